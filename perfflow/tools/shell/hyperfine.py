"""``hyperfine``: time a command with hyperfine, one run per process, so that perfflow can interleave the two sides.

``--shell`` is always given, since 1.x runs commands in a shell by default and 2.x does not. ``-i`` is never given: if
the command fails, hyperfine exits with status 1 and leaves an export file of 0 bytes.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.shell.hyperfine_json import FORMAT

_EXPORT = "hyperfine.json"
_LONGEST_LABEL = 200


def invocations(call: Call[CommandOptions]) -> tuple[Invocation, ...]:
    """Run the command once, without warm-up; perfflow controls warm-up and repetition."""
    text = call.shell_text if call.options.shell else shlex.join(call.command)
    # With `=`, a name may start with `-`.
    label = (call.benchmark or "command")[:_LONGEST_LABEL]
    argv = (
        *(call.program or "hyperfine", "--style", "none", f"--shell={'default' if call.options.shell else 'none'}"),
        *("--warmup", "0", "--runs", "1", f"--command-name={label}", "--export-json", str(call.folder / _EXPORT)),
        *((f"--output={call.stdout}",) if call.stdout else ()),
        *("--", text),
    )
    return (Invocation(argv),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read export files of hyperfine 1.x and of ``schema_version`` 2, in s and bytes.

    Raises ToolOutputError if the file is missing, empty or invalid, or reports that the command failed.
    """
    # hyperfine's message goes on to suggest -i, which would turn a failure into a fast run.
    said = tool_files.last_words(call.folder).partition(". Use the")[0]
    found = FORMAT.read(call.folder / _EXPORT, said)
    if len({name for name, _ in found.benchmarks}) != 1:
        raise ToolOutputError(f"{_EXPORT} does not hold exactly one result")
    parsed = found.parsed(single=True)
    return replace(parsed, readings=tuple(replace(reading, benchmark="") for reading in parsed.readings))


ADAPTER = Adapter(
    "hyperfine",
    Role.MEASURE,
    invocations,
    parse,
    program=Program("hyperfine", "apt-get install hyperfine"),
    metrics=builtin_metrics("time", "cpu", "user", "system", "rss"),
    passes_stdout=True,
    outputs=leaves(_EXPORT),
)
