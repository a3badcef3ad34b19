"""The contract that every adapter keeps, as a pytest class for those who write one.

    from perfflow.testing import AdapterContract
    import my_adapter

    class TestMyAdapter(AdapterContract):
        adapter = my_adapter.ADAPTER
        command = ["./program", "--quick"]
        failing_command = ["sh", "-c", "exit 3"]
        samples = Path(__file__).parent / "data" / "my-adapter-1.2"

It starts the real program as perfflow does and damages real outputs: whatever is missing, empty, cut, stale or
nonsense has to be an error, and so has a program that failed, whatever the exit status says.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from perfflow.errors import ToolOutputError, UserError
from perfflow.plan.plan import Planned
from perfflow.process.child import MARK, Attendant, find_program
from perfflow.run import invoke, programs
from perfflow.run.invoke import Failure, Invoked
from perfflow.run.prepare import Ready
from perfflow.samples.metrics import METRICS
from perfflow.samples.readings import Parsed, Side, Usage
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Call, Invocation
from perfflow.workflow import tool_files
from perfflow.workflow.model import Step

NONSENSE = (b"", b"\n \n", b"\0" * 100, b"\xff\xfe\x00nonsense\n", b"{}", b"[]", b"null", b"1")
OTHERS = (
    b'{"results": []}\n',
    b'{"benchmarks": [], "context": {}, "machine_info": {}}\n',
    b'{"results": [{"file": "a.c"}], "rows": [], "pps": []}\n',
    b"Benchmark 1: ./program\n  Time (abs): 1.2 ms\n",
    b"name,value\na,1\n",
)
"""Files of other tools, or of none, without a benchmark in them."""
SHARES = (*(share / 20 for share in range(1, 20)), 0.97, 0.99)
KILLED = ("sh", "-c", "kill -9 $$")
_TIMEOUT = 120.0
_USAGE = Usage(wall=1.0)


def tool_of_file(path: Path | str) -> Adapter:
    """The adapter of a tool file, to be tested like any other. Raises UserError with the file's mistakes."""
    tool, problems = tool_files.load(Path(path))
    if tool is None:
        raise UserError(problems)
    return tool.adapter


def _idle(adapter: Adapter) -> Adapter:
    """The adapter with a program that ends well and does nothing: only what was there before is left to be read."""

    def emptied(processes: Callable[[Call], tuple[Invocation, ...]]) -> Callable[[Call], tuple[Invocation, ...]]:
        return lambda call: tuple(replace(item, argv=("true",)) for item in processes(call))

    return replace(adapter, invocations=emptied(adapter.invocations), preparations=emptied(adapter.preparations))


class AdapterContract:
    """Subclass it in a test module, and name the adapter, a command that goes well, one that fails, and real outputs.

    ``samples`` is a folder with what a good run left (stdout under the name that the invocation gives it, stderr where
    that is all the tool reads), ``unread`` names files in it that ``parse`` does not look into, such as the raw data of
    a converter. ``options`` are further keys of ``with``; without a key ``command``, ``failing_options`` are
    those of a run that fails.
    """

    adapter: ClassVar[Adapter]
    samples: ClassVar[Path]
    command: ClassVar[Sequence[str]] = ()
    failing_command: ClassVar[Sequence[str]] = ("sh", "-c", "exit 3")
    options: ClassVar[Mapping[str, Any]] = {}
    failing_options: ClassVar[Mapping[str, Any]] = {}
    unread: ClassVar[Sequence[str]] = ()

    def test_perfflow_finds_it(self) -> None:
        """An installed adapter is found under its name and can be imported."""
        tool = self.adapter
        if not tool.is_of_file:
            found = registry.find(tool.name)
            why = registry.trouble(tool.name) or f"no distribution names it in the entry-point group {registry.GROUP}"
            _require(found is not None, f"perfflow does not find {tool.name!r}: {why}")
            _require(found is tool, f"perfflow finds another {tool.name!r}, from {registry.origin(tool.name)}")

    def test_it_says_how_to_install_its_program(self) -> None:
        """A program that is missing is named with a remedy."""
        program = self.adapter.program
        _require(bool(program.install) >= bool(program), "a program without `install`, the command that installs it")

    def test_its_options_refuse_unknown_keys(self) -> None:
        """A misspelt key of ``with`` must not be passed over."""
        schema = self.adapter.options.model_json_schema()
        json.dumps(schema)
        _require(schema.get("additionalProperties") is False, "`options` takes keys that it does not know")

    def test_a_real_run_yields_what_the_adapter_names(self, tmp_path: Path) -> None:
        """The program is started as perfflow starts it, twice in one folder, as samples are taken."""
        for _ in range(2):
            self._check_sane(self._run(tmp_path / "out").parsed)

    def test_a_failing_program_is_an_error(self, tmp_path: Path) -> None:
        """Also where the tool itself exits with 0, and where the outputs of a good run lie in the folder."""
        command_given = self.adapter.takes_command
        for folder in (tmp_path / "new", self._copy(tmp_path / "used")):
            self._refuses_run(folder, self.adapter, failing=True, command_given=command_given)

    def test_a_killed_program_is_an_error(self, tmp_path: Path) -> None:
        """A program that a signal ends has no figures; some tools exit with 0 all the same."""
        if self.adapter.takes_command:
            self._refuses_run(tmp_path / "new", self.adapter, failing=True, command_given=True, words=KILLED)

    def test_a_program_that_does_nothing_is_an_error(self, tmp_path: Path) -> None:
        """Exit status 0 without new outputs, in a new folder and over the outputs of an earlier run."""
        idle = _idle(self.adapter)
        for folder in (tmp_path / "new", self._copy(tmp_path / "used")):
            self._refuses_run(folder, idle, failing=False, command_given=True)

    def test_a_sample_parses_the_same_twice(self, tmp_path: Path) -> None:
        """``parse`` is a pure function of the files."""
        call = self._call(self._copy(tmp_path / "out"))
        first = self.adapter.parse(call, _USAGE)
        self._check_sane(first)
        _require(first == self.adapter.parse(call, _USAGE), "the same files parse differently the second time")

    def test_a_missing_output_is_an_error(self, tmp_path: Path) -> None:
        """Each file that ``parse`` reads is needed."""
        folder = self._copy(tmp_path / "out")
        for file in self._files(folder):
            content = file.read_bytes()
            file.unlink()
            self._refuses_files(folder, f"without {file.name}")
            file.write_bytes(content)

    def test_nonsense_is_an_error(self, tmp_path: Path) -> None:
        """Empty files, NUL bytes, JSON of another shape, files of other tools."""
        folder = self._copy(tmp_path / "out")
        for file in self._files(folder):
            content = file.read_bytes()
            for nonsense in (*NONSENSE, *OTHERS):
                file.write_bytes(nonsense)
                self._refuses_files(folder, f"{file.name} holding {nonsense[:12]!r}")
            file.write_bytes(content)

    def test_a_cut_output_is_an_error(self, tmp_path: Path) -> None:
        """A disk that is full, or a program that is killed, cuts a file somewhere inside a line."""
        folder = self._copy(tmp_path / "out")
        for file in self._files(folder):
            content = file.read_bytes()
            for share in SHARES:
                # At least one character more than the end of the last line is lost.
                kept = min(int(len(content) * share), len(content.rstrip()) - 1)
                file.write_bytes(content[: max(1, kept)].rstrip(b"\n"))
                self._refuses_files(folder, f"{file.name} cut at {share:.0%}")
            file.write_bytes(content)

    def _call(self, folder: Path, *, failing: bool = False, words: Sequence[str] = ()) -> Call:
        tool = self.adapter
        words = words or (self.failing_command if failing else self.command)
        given = {**self.options, **(self.failing_options if failing else {})}
        takes_command = tool.takes_command
        options = tool.options.model_validate({**({"command": list(words)} if takes_command else {}), **given})
        path = os.environ.get("PATH", os.defpath)
        own = tool.program
        program = (programs.located(own, path) or "") if own else ""
        _require(bool(program) == bool(own), f"{own.name} is not installed: {own.install}")
        command = tuple(words) if takes_command else ()
        if command:
            command = (find_program(command[0], path, Path.cwd()) or command[0], *command[1:])
        return Call(options, folder, program, command)

    def _run(
        self, folder: Path, tool: Adapter | None = None, *, failing: bool = False, words: Sequence[str] = ()
    ) -> Invoked:
        """Start the processes as a run does, and read what they left. Raises Failure."""
        used = tool or self.adapter
        step = Step(uses=used.name)
        planned = Planned(used.name, step, "baseline", {}, used.role, used, alone=True, needs=(), after=())
        env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        env[MARK] = f"contract-{secrets.token_hex(4)}"
        call = self._call(folder, failing=failing, words=words)
        ready = Ready(planned, Side.BASELINE, call.command, env, Path.cwd(), _TIMEOUT, used, call)
        folder.mkdir(exist_ok=True)
        with Attendant() as attendant:
            invoke.prepare(attendant, ready)
            return invoke.run(attendant, ready, folder)

    def _refuses_run(
        self, folder: Path, tool: Adapter, *, failing: bool, command_given: bool, words: Sequence[str] = ()
    ) -> None:
        _require(
            command_given or not failing or bool(self.failing_options),
            "name `failing_options`, with which the tool fails",
        )
        try:
            self._run(folder, tool, failing=failing, words=words)
        except Failure as failure:
            _require(bool(failure.reason), "a failure without a reason")
            return
        raise AssertionError(f"a run that failed is taken for a good one (in {folder.name} folder)")

    def _refuses_files(self, folder: Path, what: str) -> None:
        try:
            self.adapter.parse(self._call(folder), _USAGE)
        except ToolOutputError as error:
            reason = str(error)
            _require(0 < len(reason) < 1000 and reason.isprintable(), f"{what}: the reason is not one line: {reason!r}")
            return
        raise AssertionError(f"parse takes {what} for a good output")

    def _check_sane(self, parsed: Parsed) -> None:
        _require(bool(parsed.readings or parsed.hotspots or parsed.profiles), "nothing was read")
        names = {reading.metric for reading in parsed.readings}
        _require(
            names <= self.adapter.metrics.keys(),
            f"`metrics` does not name {', '.join(sorted(names - self.adapter.metrics.keys()))}",
        )
        for reading in parsed.readings:
            least = 0.0 if reading.metric in METRICS else -(2.0**63)
            _require(least <= reading.value < 2.0**63, f"{reading.metric} is {reading.value}")
        for unit in {spot.unit for spot in parsed.hotspots}:
            whole = sum(spot.share for spot in parsed.hotspots if spot.unit == unit)
            _require(whole <= 1 + 1e-6, f"the hotspots' shares of {unit} add up to more than 1")
        json.dumps(asdict(parsed), allow_nan=False).encode()

    def _copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.samples, target))

    def _files(self, folder: Path) -> list[Path]:
        there = [file for file in sorted(folder.iterdir()) if file.name not in self.unread]
        found = [file for file in there if file.name != "stderr"]
        # Beside an output, stderr is only talk; alone, it is what the tool reads.
        found = found or [file for file in there if file.stat().st_size]
        _require(bool(found), f"{self.samples} holds no output")
        return found


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
