"""The contract of adapters as a pytest class. perfflow's own tools are tested with it, and yours can be as well.

    from perfflow.testing import AdapterContract
    import my_adapter

    class TestMyAdapter(AdapterContract):
        adapter = my_adapter.ADAPTER
        command = ["./program", "--quick"]
        failing_command = ["sh", "-c", "exit 3"]
        samples = "data/my-adapter-1.2"

It starts the real program as perfflow does, replaces it by faulty ones, and damages real outputs. An output that is
missing, empty, cut, stale or nonsense must be an error, and so must a failed program, whatever its exit status is.
``check_sane`` has the checks that every Parsed must pass, whatever files it was read from.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from perfflow.execute import invoke, prepare
from perfflow.execute.child import MARK, Spawner, find_program
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.errors import ToolOutputError, UserError
from perfflow.model.kernels import KernelResult
from perfflow.model.memory_curve import MOST, MemoryCurve
from perfflow.model.metrics import METRICS
from perfflow.model.readings import Hotspot, Parsed, Side, Usage
from perfflow.plan.plan import Planned
from perfflow.testing.mutations import GOOD, Answer, Files, Outcome, Parser, Summary, answer_of, run
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Call, Effort, Invocation, Options, Role
from perfflow.workflow import declared_tool
from perfflow.workflow.model import Step

NONSENSE = (b"", b"\n \n", b"\0" * 100, b"\xff\xfe\x00nonsense\n", b"{}", b"[]", b"null", b"1")
OTHERS = (
    b'{"results": []}\n',
    b'{"benchmarks": [], "context": {}, "machine_info": {}}\n',
    b'{"results": [{"file": "a.c"}], "rows": [], "pps": []}\n',
    b"Benchmark 1: ./program\n  Time (abs): 1.2 ms\n",
    b"name,value\na,1\n",
)
"""Files of other tools, or of no tool, without a benchmark."""
SHARES = (*(share / 20 for share in range(1, 20)), 0.97, 0.99)
FAILING = {"exits 3": ("sh", "-c", "exit 3"), "is killed": ("sh", "-c", "kill -9 $$")}
FAILING_PYTHON = {
    "exits 3": (sys.executable, "-c", "import sys; sys.exit(3)"),
    "is killed": (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"),
}
LIES = ("gone", "empty", "cut", "other")
"""Damage to new outputs after the program wrote them and exited with 0."""
NO_LIE = "none"
MADE = ("parsed.json", "stacks.folded")
"""Files that perfflow creates from the samples."""
_LIAR = """
import shutil, sys
from pathlib import Path
lie, good, folder, *kept = sys.argv[1:]
shutil.copytree(good, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
for path in [each for each in Path(folder).rglob("*") if each.is_file()]:
    if path.name not in {"liar.stderr", "sampler.stderr", *kept}:
        content = path.read_bytes()
        left = {"empty": b"", "cut": content[: len(content) * 2 // 3].rstrip(), "other": b'{"results": [{}]}'}
        if lie != "none":
            path.unlink()
        if lie in left:
            path.write_bytes(left[lie])
"""
_IMPURE = {"subprocess", "time", "datetime", "random", "socket", "os", "multiprocessing", "threading", "git"}
_USAGE = Usage(wall=1.0)
_LONGEST_REASON = 600


def tool_of_file(path: Path | str) -> Adapter:
    """Return the adapter of a tool file, to test it like any other. Raises UserError with the mistakes of the file."""
    tool, problems = declared_tool.load_tools(Path(path))
    if tool is None:
        raise UserError(problems)
    return tool.adapter


def _idle(adapter: Adapter) -> Adapter:
    """Return the adapter with a program that does nothing and exits with 0. Only earlier outputs can be read."""

    def emptied(processes: Callable[[Call], tuple[Invocation, ...]]) -> Callable[[Call], tuple[Invocation, ...]]:
        return lambda call: tuple(replace(item, argv=("true",), beside=0.0) for item in processes(call))

    build = replace(adapter.build, preparations=emptied(adapter.build.preparations))
    return replace(adapter, invocations=emptied(adapter.invocations), build=build)


def _faulty(adapter: Adapter, lie: str, good: Path, kept: Sequence[str]) -> Adapter:
    """Return the adapter with a program that copies the outputs in ``good``, damages them, and exits with 0."""

    def invocations(call: Call) -> tuple[Invocation, ...]:
        argv = (sys.executable, "-I", "-S", "-c", _LIAR, lie, str(good), str(call.folder), *kept)
        return (Invocation(argv, stderr="liar.stderr"),)

    return replace(adapter, invocations=invocations, build=replace(adapter.build, preparations=lambda _: ()))


class AdapterContract:
    """Subclass it in a test module and set the adapter, a command that succeeds, one that fails, and real outputs.

    ``samples``: a folder with the outputs of a good run. Stdout has the name that the invocation gives it. Include
    stderr only if the tool reads nothing else.
    """

    adapter: ClassVar[Adapter]
    """The adapter to test: an ``Adapter``, or ``tool_of_file(PATH)``."""
    samples: ClassVar[Path | str] = ""
    """A folder with the outputs of a good run, relative to the test's; "" for a tool without output files."""
    captured: ClassVar[Path | str] = ""
    """A folder with further outputs, good and bad, in folders ``VERSION/CASE``. All of them are mutated."""
    command: Sequence[str] = ()
    """The command of a good run, any that the tool can run."""
    failing_command: ClassVar[Sequence[str]] = ()
    """The command of a run that fails. Default: one that exits with 3."""
    options: Mapping[str, Any] = {}
    """Further keys of ``with``."""
    failing_options: ClassVar[Mapping[str, Any]] = {}
    """Changes of ``options`` with which a run fails. Required if the tool has no key ``command``."""
    captured_with: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Keys of ``with`` that a case was captured with, by the name of its folder; "" for all other cases."""
    files: ClassVar[Mapping[str, str]] = {}
    """Contents of files in the working directory of the program, by path. Without files, pytest's directory is used."""
    unread: ClassVar[Sequence[str]] = ()
    """Names of samples that ``parse`` does not read, such as the raw data of a converter."""
    ends: ClassVar[bool] = True
    """Whether the format marks its end, so that every cut of a file can be detected."""
    timeout: ClassVar[float] = 120.0
    """Time limit of each process, in seconds."""
    stand_in: ClassVar[str] = ""
    """A path used instead of a program that may be missing. If it is missing, tests that start it are skipped."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.place = Path.cwd()
        if self.files:
            self.place = tmp_path_factory.mktemp("place")
            for name, text in self.files.items():
                (self.place / name).parent.mkdir(exist_ok=True)
                (self.place / name).write_text(text)

    def test_perfflow_finds_it(self) -> None:
        """An installed adapter is found under its name and can be imported."""
        tool = self.adapter
        if not tool.is_of_file:
            found = registry.find(tool.name)
            why = registry.trouble(tool.name) or f"no distribution names it in the entry-point group {registry.GROUP}"
            require(found is not None, f"perfflow does not find {tool.name!r}: {why}")
            require(found is tool, f"perfflow finds another {tool.name!r}, from {registry.origin(tool.name)}")

    def test_it_says_how_to_install_its_program(self) -> None:
        """A missing program is reported with an install command."""
        program = self.adapter.program
        require(bool(program.install) >= bool(program), "a program without `install`, the command that installs it")

    def test_its_options_refuse_unknown_keys(self) -> None:
        """A misspelt key of ``with`` must be an error."""
        schema = self.adapter.options.model_json_schema()
        json.dumps(schema)
        require(schema.get("additionalProperties") is False, "`options` accepts unknown keys")

    def test_it_starts_nothing_itself(self) -> None:
        """An adapter is pure functions: no process, no clock."""
        if self.adapter.is_of_file:
            return
        source = Path(inspect.getfile(inspect.unwrap(self.adapter.parse))).read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(source)))
        imports = [node.names for node in nodes if isinstance(node, ast.Import)]
        imported = {alias.name.partition(".")[0] for names in imports for alias in names}
        imported |= {str(node.module).partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        wrong = imported & _IMPURE
        require(not wrong, f"its module imports {', '.join(sorted(wrong))}")

    def test_a_suite_runs_one_benchmark_alone_and_briefly(self, tmp_path: Path) -> None:
        """``only`` and ``effort`` change the command."""
        tool, call = self.adapter, self._call(tmp_path)
        if tool.suite.listing(call) is None or tool.is_built_first or math.isinf(tool.suite.together):
            return
        whole, alone, brief = (
            (*found.argv, *found.env.values())
            for wanted in (call, replace(call, chosen=("a::b[c]",)), replace(call, effort=Effort.BRIEF))
            for found in tool.invocations(wanted)[:1]
        )
        require(alone != whole and "a::b" in alone[-1], "`only` is neither in the argv nor in the environment")
        require(brief != whole, "a brief run is a normal one")

    def test_a_real_run_yields_what_the_adapter_names(self, tmp_path: Path) -> None:
        """The program is started as perfflow starts it for samples: twice in one folder."""
        self._good_run(tmp_path)

    def test_a_failing_program_is_an_error(self, tmp_path: Path) -> None:
        """Also if the tool itself exits with 0, and if the folder has the outputs of a good run."""
        for folder in self._folders(tmp_path):
            self._refuses_run(folder, self.adapter, "exits 3")

    def test_a_killed_program_is_an_error(self, tmp_path: Path) -> None:
        """A killed program has no figures, even if the tool exits with 0."""
        if self.adapter.takes_command:
            self._refuses_run(tmp_path / "new", self.adapter, "is killed")

    def test_a_program_that_does_nothing_is_an_error(self, tmp_path: Path) -> None:
        """Exit status 0 without new outputs, in a new folder and over the outputs of an earlier run."""
        if self.samples:
            for folder in self._folders(tmp_path):
                self._refuses_run(folder, _idle(self.adapter))

    @pytest.mark.parametrize("lie", LIES)
    def test_a_program_that_lies_is_an_error(self, lie: str, tmp_path: Path) -> None:
        """A program exits with 0, but its new outputs are missing, empty, cut, or of another format."""
        if self.samples and self.adapter.role is not Role.WORK:
            good = self._good_run(tmp_path)
            self._refuses_run(tmp_path / "new", _faulty(self.adapter, lie, good, self._passed_over()))

    def test_a_sample_parses_the_same_twice(self, tmp_path: Path) -> None:
        """``parse`` is a pure function of the files."""
        if self.samples:
            call = self._of_sample(self._copy(tmp_path / "out"))
            first = self.adapter.parse(call, _USAGE)
            self._check_sane(first)
            require(first == self.adapter.parse(call, _USAGE), "the same files parse differently the second time")

    def test_a_missing_output_is_an_error(self, tmp_path: Path) -> None:
        """Each file that ``parse`` reads is required."""
        self._refuses_each(tmp_path, lambda _: [None])

    def test_nonsense_is_an_error(self, tmp_path: Path) -> None:
        """Empty files, NUL bytes, JSON of another shape, files of other tools."""
        self._refuses_each(tmp_path, lambda _: (*NONSENSE, *OTHERS))

    def test_a_cut_output_is_an_error(self, tmp_path: Path) -> None:
        """A full disk or a killed program cuts a file inside a line."""
        self._refuses_each(tmp_path, self._cuts)

    def test_mutated_outputs_are_errors_or_read_right(self) -> None:
        """Changed bytes, lines, numbers and JSON nodes cause no exception, no hang, and no made-up figure."""
        if not self.samples or self.adapter.role is Role.CHECK:
            return
        examples = int(os.environ.get("PERFFLOW_FUZZ_EXAMPLES", "200"))
        tally = run(self.parser(), examples, int(os.environ.get("PERFFLOW_FUZZ_SEED", "1")))
        bad = {outcome: tally.outcomes[outcome] for outcome in Outcome if outcome not in GOOD}
        require(not any(bad.values()), f"{bad}: {tally.defects}")
        require(bool(tally.outcomes[Outcome.ERROR] and tally.outcomes[Outcome.RIGHT]), f"{tally.outcomes}")

    @classmethod
    def cases(cls) -> list[Path]:
        """Return all folders with outputs."""
        more = sorted(path for path in cls._beside(cls.captured).glob("*/*") if path.is_dir()) if cls.captured else []
        return more or [cls._beside(cls.samples)]

    @classmethod
    def _beside(cls, path: Path | str) -> Path:
        return Path(inspect.getfile(cls)).parent / path

    @classmethod
    def parser(cls) -> Parser:
        """Return the adapter as a parser with all its cases, for mutations."""
        folders = cls.cases()
        cases = [{name: text for name, text in files_of(case).items() if name not in MADE} for case in folders]
        answer = partial(cls._answer, {str(number): case.name for number, case in enumerate(folders)})
        return Parser(f"tool {cls.adapter.name}", cases, answer, ends=cls.ends, skipped=cls._passed_over())

    @classmethod
    def _answer(cls, names: Mapping[str, str], folder: Path) -> Answer:
        """Return what ``parse`` reads from a folder named by the number of a case."""
        call = cls.call_of_case(names.get(folder.name, ""), folder)
        parsed = cls.adapter.parse(call, _USAGE)
        # A work step has no figures. Each of its results counts as one figure.
        if handed_on := cls.adapter.build.results(call):
            texts = [f"{name}={value}".replace(str(folder), "/tmp/out") for name, value in handed_on.items()]
            return Answer({(text, "result"): Summary(1, 1.0, 1.0, 1.0) for text in texts})
        check_sane(parsed)
        return answer_of(parsed, folder)

    @classmethod
    def call_of_case(cls, case: str, folder: Path) -> Call:
        """Return the call that reads the outputs of a case in ``folder``."""
        given = cls.captured_with.get(case, cls.captured_with.get("", cls.options))
        words = tuple(given.get("command", cls.command or ("/usr/bin/true",))) if cls.adapter.takes_command else ()
        return Call(cls._options_of(words, given), folder, cls.stand_in or "/usr/bin/true", words)

    @classmethod
    def _options_of(cls, words: Sequence[str], given: Mapping[str, Any]) -> Options:
        command = {"command": list(words)} if cls.adapter.takes_command else {}
        return cls.adapter.options.model_validate({**command, **given})

    def _cuts(self, content: bytes) -> Iterable[bytes]:
        for share in SHARES:
            kept = int(len(content) * share)
            if self.ends:
                # Cut at least one character before the end of the last line.
                yield content[: max(1, min(kept, len(content.rstrip()) - 1))].rstrip(b"\n")
            else:
                # A cut between two records cannot be detected, so cut inside a record.
                yield content[: max(1, kept)].rstrip(b"0123456789\n") + b" ("

    def _call(self, folder: Path, failing: str = "") -> Call:
        tool, words = self.adapter, self.command
        if failing:
            words = self.failing_command if failing == "exits 3" else ()
            words = words or (FAILING_PYTHON if tool.python else FAILING)[failing]
        options = self._options_of(words, {**self.options, **(self.failing_options if failing else {})})
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        declared = tool.program
        program = (prepare.located(declared, path) or "") if declared else ""
        if declared and not program and self.stand_in:
            pytest.skip(f"{declared.name} is not installed: {declared.install}")
        require(bool(program) == bool(declared), f"{declared.name} is not installed: {declared.install}")
        command = tuple(words) if tool.takes_command else ()
        if command:
            command = (find_program(command[0], path, self.place) or command[0], *command[1:])
        return Call(options, folder, program, command)

    def _run(self, folder: Path, tool: Adapter, failing: str = "") -> Invoked:
        """Start the processes as a run does, and read their outputs. Raises Failure."""
        step = Step(uses=tool.name)
        planned = Planned(tool.name, step, "baseline", {}, tool.role, tool, alone=True, needs=(), after=())
        env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        env[MARK] = f"contract-{secrets.token_hex(4)}"
        call = self._call(folder, failing)
        ready = ReadyProcess(planned, Side.BASELINE, call.command, env, self.place, self.timeout, tool, call)
        ready = replace(ready, first=tool.build.before_each(call))
        folder.mkdir(exist_ok=True)
        with Spawner() as spawner:
            invoke.prepare(spawner, ready)
            return invoke.run(spawner, ready, folder)

    def _good_run(self, place: Path) -> Path:
        """Run the program twice in one folder, as for samples. Return its outputs, which all tests share."""
        kept = place.parent / f"good-run-{type(self).__module__}.{type(self).__qualname__}"
        if not kept.exists():
            for _ in range(2):
                self._check_sane(self._run(place / "out", self.adapter).parsed)
            if self.samples:
                # Check that undamaged copies are accepted, so that only the damage can cause an error.
                told = _faulty(self.adapter, NO_LIE, place / "out", ())
                self._check_sane(self._run(place / "told", told).parsed)
            (place / "out").rename(kept)
        return kept

    def _folders(self, place: Path) -> list[Path]:
        """Return a new folder, and a folder with the outputs of an earlier run."""
        return [place / "new", *([self._copy(place / "used")] if self.samples else [])]

    def _refuses_run(self, folder: Path, tool: Adapter, failing: str = "") -> None:
        can_fail = tool.takes_command or bool(self.failing_options)
        require(can_fail or not failing, "set `failing_options`, with which the tool fails")
        try:
            self._run(folder, tool, failing)
        except Failure as failure:
            require(bool(failure.reason), "a failure without a reason")
            return
        raise AssertionError(f"a failed run is accepted (in {folder.name} folder)")

    def _refuses_each(self, place: Path, contents: Callable[[bytes], Iterable[bytes | None]]) -> None:
        """Replace the content of each file of a sample, or delete the file. ``parse`` must reject all of them."""
        if not self.samples:
            return
        folder = self._copy(place / "out")
        for file in self._files(folder):
            real = file.read_bytes()
            for content in contents(real):
                file.unlink()
                if content is not None:
                    file.write_bytes(content)
                self._refuses_files(folder, f"{file.name} holding {(content or b'nothing')[-12:]!r}")
                file.write_bytes(real)

    def _refuses_files(self, folder: Path, what: str) -> None:
        try:
            self.adapter.parse(self._of_sample(folder), _USAGE)
        except ToolOutputError as error:
            reason = str(error)
            one_line = 0 < len(reason) < _LONGEST_REASON and reason.isprintable()
            require(one_line, f"{what}: the reason is not one line: {reason!r}")
            return
        raise AssertionError(f"parse accepts {what}")

    def _of_sample(self, folder: Path) -> Call:
        return self.call_of_case(Path(self.samples).name, folder)

    def _check_sane(self, parsed: Parsed) -> None:
        tool = self.adapter
        unnamed = {reading.metric for reading in parsed.readings} - tool.metrics.keys()
        require(not unnamed or tool.counters, f"`metrics` does not name {', '.join(sorted(unnamed))}")
        require(all(spot.source == tool.name for spot in parsed.hotspots), "hotspots have another `source`")
        if tool.role not in {Role.WORK, Role.CHECK}:
            check_sane(parsed, tool.metrics)

    def _copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self._beside(self.samples), target, ignore=shutil.ignore_patterns(*MADE, "*.got")))

    @classmethod
    def _passed_over(cls) -> Sequence[str]:
        """Return the names of files that are not read. Stderr is read only if it is the only output."""
        there = {file.name for file in cls._beside(cls.samples).rglob("*") if file.is_file()}
        return (*cls.unread, *(["stderr"] if there - {"stderr", *MADE, *cls.unread} else []))

    def _files(self, folder: Path) -> list[Path]:
        passed_over = self._passed_over()
        found = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name not in passed_over]
        require(any(file.stat().st_size for file in found), f"{self.samples} contains no output")
        return found


def files_of(folder: Path) -> Files:
    """Return the content of every file below a folder by path, without the expected results."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if not path.name.startswith(MADE[0])}


def check_sane(parsed: Parsed, own: Collection[str] = ()) -> None:
    """Raise AssertionError if a figure is impossible or a text is not one line. ``own``: metrics of the adapter."""
    require(bool(parsed.readings or parsed.hotspots or parsed.profiles or parsed.peaks), "nothing was read")
    for peak in parsed.peaks:
        require(0 < peak.value < 2.0**63, f"a peak of {peak.value}")
        require(peak.how.isprintable(), f"{peak.how!r} is not one line")
    require(f"{parsed.device}{[peak.device for peak in parsed.peaks]}".isprintable(), "a device is not one line")
    for kernel in parsed.kernels:
        _check_kernel(kernel)
    for reading in parsed.readings:
        # perfflow's own metrics are not negative. Metrics of an adapter may be.
        least = -(2.0**63) if reading.metric in set(own) - METRICS.keys() else 0.0
        for value in (reading.value, *reading.inner.values()):
            require(least <= value < 2.0**63, f"{reading.metric} is {value}")
    _check_hotspots(parsed.hotspots)
    if parsed.memory:
        _check_memory(parsed.memory)
    for cost in parsed.costs:
        require(0 < cost.count < 2.0**63, f"{cost.function} costs {cost.count}")
        require(bool(cost.function) and f"{cost.function}{cost.file}".isprintable(), f"{cost} is not one line")
    json.dumps(asdict(parsed), allow_nan=False, default=str).encode()


def _check_memory(curve: MemoryCurve) -> None:
    require(0 < len(curve.at) == len(curve.held) <= MOST, f"a curve of {len(curve.at)} and {len(curve.held)} points")
    require(list(curve.at) == sorted(curve.at) and curve.at[0] >= 0, "the times of a curve decrease")
    require(all(0 <= held < 2.0**63 for held in curve.held), "a curve has an impossible value")


def _check_kernel(kernel: KernelResult) -> None:
    require(bool(kernel.name), "a kernel without a name")
    shares = (kernel.share, kernel.occupancy_theoretical, kernel.issued, kernel.uncoalesced)
    require(all(0 <= share <= 1 + 1e-9 for share in shares if share is not None), f"{kernel.name} has shares {shares}")
    counts = (kernel.grid, kernel.threads, kernel.registers, kernel.shared_static, kernel.shared_dynamic)
    require(all(0 <= count < 2**63 for count in counts if count is not None), f"{kernel.name} has counts {counts}")
    texts = [kernel.device, kernel.capability, *kernel.limiters, *(item.reason for item in kernel.stalls)]
    texts += [kernel.precision, *(text for item in kernel.advice for text in (item.rule, item.text))]
    require("".join(texts).isprintable(), f"a text about {kernel.name!r} is not one line")


def _check_hotspots(hotspots: Collection[Hotspot]) -> None:
    for spot in hotspots:
        shares = (spot.share, spot.inclusive_share or 0.0)
        require(min(shares) >= 0 and 0 < max(shares) <= 1 + 1e-9, f"{spot.location} has the shares {shares}")
        require(bool(spot.location) and spot.line >= 0, f"{spot} has no place")
        require(f"{spot.location}{spot.file}{spot.cause}".isprintable(), f"{spot} is not one line")
    for unit in {spot.unit for spot in hotspots}:
        whole = sum(spot.share for spot in hotspots if spot.unit == unit)
        require(whole <= 1 + 1e-6, f"the hotspots' shares of {unit} add up to {whole}")


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with the message ``otherwise`` unless ``holds``."""
    if not holds:
        raise AssertionError(otherwise)
