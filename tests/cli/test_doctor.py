"""``perfflow doctor`` on the real machine, and its rules on made-up ones."""

from __future__ import annotations

import io
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfflow.cli import doctor_command
from perfflow.machine import settings
from perfflow.machine.noise import NoiseClass, NoiseSelfTest, classify, examine, quick_check, self_test
from perfflow.machine.noise_findings import FindingState, NoiseFinding
from perfflow.machine.settings import timer_step
from perfflow.model.errors import UserError
from tests.cli.shell import perfflow

OK, WARN, BAD, UNKNOWN = FindingState.OK, FindingState.WARN, FindingState.BAD, FindingState.UNKNOWN
CPU = "sys/devices/system/cpu"
PARANOID = "proc/sys/kernel/perf_event_paranoid"
RANDOMIZE = "proc/sys/kernel/randomize_va_space"
PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
CLOCK = "sys/devices/system/clocksource/clocksource0"
GROUP = "sys/fs/cgroup/cpu,cpuacct/a"


def made_up(root: Path, files: Mapping[str, str]) -> Path:
    """Write the kernel's files of a machine. A name that ends with a slash is an empty folder."""
    for name, text in files.items():
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(text)
    return root


def governor(core: int) -> str:
    return f"{CPU}/cpu{core}/cpufreq/scaling_governor"


def stat(user: int, idle: int, steal: int) -> dict[str, str]:
    """Return the kernel's count of what the cores did."""
    return {"proc/stat": f"cpu {user} 0 0 {idle} 0 0 0 {steal} 0 0\n"}


@dataclass
class Row:
    """What is found on a machine with these files, of which some are different at the second look."""

    name: str
    state: FindingState
    files: Mapping[str, str]
    later: Mapping[str, str] = field(default_factory=dict)
    value: str | None = None
    remedy: str = ""


VIRTUAL = {"proc/cpuinfo": "flags\t: fpu hypervisor lm\n"}
BARE = {"proc/cpuinfo": "flags\t: fpu lm\n"}
NO_SIBLINGS = {f"{CPU}/smt/active": "0\n"}
NO_BATTERY = {"sys/class/power_supply/": ""}
FIX = "perfflow doctor --fix"
ROWS = [
    Row("frequency governor", WARN, {governor(0): "powersave\n"}, remedy=FIX),
    Row("frequency governor", WARN, {governor(0): "performance", governor(1): "powersave"}, remedy=FIX),
    Row("turbo", OK, {f"{CPU}/intel_pstate/no_turbo": "1\n"}),
    Row("turbo", WARN, {f"{CPU}/cpufreq/boost": "1"}, remedy=FIX),
    Row("address randomization", WARN, {RANDOMIZE: "0\n"}, remedy="randomize_va_space=2"),
    Row("power", WARN, {"sys/class/power_supply/BAT0/status": "Discharging\n"}),
    Row("power", UNKNOWN, {**VIRTUAL, **NO_BATTERY}),
    Row("power", OK, {**BARE, **NO_BATTERY}, value="no battery"),
    Row("hyper-threads", WARN, {f"{CPU}/smt/active": "1"}, remedy="cpu/smt/control"),
    Row("hyper-threads", UNKNOWN, {**VIRTUAL, **NO_SIBLINGS}),
    Row("hyper-threads", OK, {**BARE, **NO_SIBLINGS}),
    Row("hypervisor", WARN, VIRTUAL),
    Row("hypervisor", OK, BARE),
    Row("transparent huge pages", WARN, {PAGES: "[always] madvise never"}, remedy=f"echo madvise | sudo tee /{PAGES}"),
    Row(
        "clock source",
        WARN,
        {f"{CLOCK}/current_clocksource": "hpet", f"{CLOCK}/available_clocksource": "hpet tsc acpi_pm"},
        remedy="echo tsc | sudo tee",
    ),
    Row("perf access", WARN, {PARANOID: "4"}, remedy=FIX),
    Row("hardware counters", WARN, {"sys/bus/event_source/devices/software": ""}),
    Row("load average", WARN, {"proc/loadavg": "999.00 1 1 1/2 3"}, remedy="ps -eo"),
    # Rates between two looks.
    Row("steal", WARN, stat(100, 1000, 0), stat(150, 1130, 20), value="10.0%"),
    Row("other load", WARN, stat(100, 1000, 0), stat(150, 1130, 20), value="35% of all cores"),
    # A virtual machine on which steal was never counted may not be told of it.
    Row("steal", UNKNOWN, {**VIRTUAL, **stat(100, 1000, 0)}, stat(110, 1090, 0)),
    Row("steal", OK, {**VIRTUAL, **stat(100, 1000, 7)}, stat(110, 1090, 7)),
    Row("steal", OK, {**BARE, **stat(100, 1000, 0)}, stat(110, 1090, 0)),
    # Limits of the own control group, of either version.
    Row(
        "cpu limit",
        WARN,
        {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"},
        value="1.5 cores",
        remedy="sudo tee",
    ),
    Row(
        "cpu limit",
        WARN,
        {
            "proc/self/cgroup": "2:cpu,cpuacct:/a\n0::/\n",
            f"{GROUP}/cpu.cfs_quota_us": "150000\n",
            f"{GROUP}/cpu.cfs_period_us": "100000\n",
        },
        value="1.5 cores",
        remedy="sudo tee",
    ),
    Row(
        "quota",
        BAD,
        {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.stat": "nr_throttled 3\n"},
        {"sys/fs/cgroup/a/cpu.stat": "nr_throttled 5\n"},
        value="throttled 2 times",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}: {row.state}")
def test_what_is_found_on_a_machine(row: Row, tmp_path: Path) -> None:
    made_up(tmp_path, row.files)

    def pause(_: float) -> None:
        made_up(tmp_path, row.later)

    seen = next(item for item in examine(tmp_path, pause=pause) if item.name == row.name)
    assert seen.state is row.state
    assert row.value in (None, seen.value)
    assert row.remedy in seen.remedy
    assert seen.why or seen.state in (OK, UNKNOWN)


def test_what_cannot_be_seen_is_unknown_and_never_ok(tmp_path: Path) -> None:
    """The ok findings do not come from the kernel's files."""
    states = {item.name: item.state for item in examine(tmp_path, pause=lambda _: None)}
    unseen = ("frequency governor", "turbo", "thermal throttling", "steal", "other load", "address randomization")
    assert {states[name] for name in unseen} == {UNKNOWN}
    assert {name for name, state in states.items() if state is OK} <= {"cores", "timer step"}


def test_it_says_what_it_sees_here(tmp_path: Path) -> None:
    done = perfflow("doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["class"] in ("quiet", "busy", "hostile")
    assert said["self_test"]["spread"] >= 1
    assert perfflow("doctor", cwd=tmp_path).stdout.startswith("this machine is ")


@pytest.mark.parametrize(
    ("findings", "spread", "share", "kind"),
    [
        ([], 1.02, 0.99, NoiseClass.QUIET),
        ([], 1.3, 0.99, NoiseClass.BUSY),
        ([NoiseFinding("other load", "", WARN)], 1.02, 0.99, NoiseClass.BUSY),
        ([NoiseFinding("turbo", "", WARN)], 1.02, 0.99, NoiseClass.QUIET),
        ([], 2.0, 0.99, NoiseClass.HOSTILE),
        ([], 1.02, 0.6, NoiseClass.HOSTILE),
        ([NoiseFinding("steal", "", BAD)], 1.02, 0.99, NoiseClass.HOSTILE),
    ],
)
def test_classes(findings: list[NoiseFinding], spread: float, share: float, kind: NoiseClass) -> None:
    assert classify(findings, NoiseSelfTest(spread, share)) is kind


def test_the_self_test_sees_what_disturbs_it() -> None:
    """A clock that advances by 4 ms per call, and by 40 ms at every seventh call."""
    times = itertools.accumulate(0.04 if look % 7 == 0 else 0.004 for look in itertools.count(1))
    disturbed = self_test(now=lambda: next(times), cpu=lambda: 0.0)
    assert disturbed.spread > 1.1
    assert disturbed.cpu_share == 0.0


def test_the_self_test_ends_early_on_a_clock_that_says_so() -> None:
    times = itertools.count(step=0.05)
    looks = [0]

    def now() -> float:
        looks[0] += 1
        return next(times)

    self_test(now=now, cpu=lambda: 0.0, limit=0.2)
    assert looks[0] < 40


def test_a_clock_with_coarse_steps_and_one_that_stands_still() -> None:
    ticks = itertools.count(step=10_000)
    assert timer_step(lambda: next(ticks)).state is WARN
    assert timer_step(lambda: 7).state is BAD


def test_a_glance_does_not_blame_the_machine_for_its_own_work(tmp_path: Path) -> None:
    """Half a second of own work on one of two cores is 50 of 100 ticks."""
    root = made_up(tmp_path, stat(100, 1000, 5))

    def test() -> NoiseSelfTest:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        made_up(root, stat(150, 1050, 5))
        return NoiseSelfTest(1.02, 0.99)

    seen = quick_check(root, test)
    load = next(item for item in seen.findings if item.name == "other load")
    assert load.state is OK
    assert seen.kind is NoiseClass.QUIET
    assert {item.name for item in seen.findings if item.state is UNKNOWN} == {"cpu pressure", "swap", "quota"}


def test_fix_and_restore_put_back_exactly_what_was_there(tmp_path: Path) -> None:
    root = made_up(tmp_path / "root", {governor(0): "powersave\n", governor(1): "performance\n", PARANOID: "4\n"})
    state = tmp_path / "state" / "tuning.json"
    changed = settings.wanted(root)
    settings.fix(changed, state)
    assert [path.name for path, _, _ in changed] == ["scaling_governor", "perf_event_paranoid"]
    assert (root / governor(0)).read_text() == "performance"
    # A crash, then another --fix: --restore still restores the original.
    (root / governor(0)).write_text("ondemand")
    settings.fix(settings.wanted(root), state)
    assert dict(settings.restore(state))[root / governor(0)] == "powersave"
    assert [(root / governor(core)).read_text() for core in (0, 1)] == ["powersave", "performance\n"]
    assert not state.exists()
    assert settings.restore(state) == []


def test_fix_sets_huge_pages_and_leaves_what_is_fine(tmp_path: Path) -> None:
    """A real file would show the choice in brackets. This one shows the written text."""
    root = made_up(tmp_path / "root", {PAGES: "[always] madvise never\n", PARANOID: "-1\n"})
    state = tmp_path / "tuning.json"
    changes = settings.wanted(root)
    assert changes == [(root / PAGES, "always", "madvise")]
    settings.fix(changes, state)
    assert settings.restore(state) == [(root / PAGES, "always")]
    assert (root / PAGES).read_text() == "always"


def test_what_could_not_be_put_back_stays_remembered(tmp_path: Path) -> None:
    root = made_up(tmp_path / "root", {PARANOID: "4\n", RANDOMIZE: "0\n"})
    state = tmp_path / "tuning.json"
    settings.fix(settings.wanted(root), state)
    gone = root / PARANOID
    gone.unlink()
    gone.mkdir()
    with pytest.raises(UserError, match="perf_event_paranoid"):
        settings.restore(state)
    assert (root / RANDOMIZE).read_text() == "0"
    gone.rmdir()
    assert settings.restore(state) == [(gone, "4")]
    assert not state.exists()


def test_a_fix_is_shown_and_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = made_up(tmp_path / "root", {PARANOID: "4\n"})
    file, state = root / PARANOID, tmp_path / "tuning.json"

    def answer(text: str, *, terminal: bool = True, yes: bool = False) -> str:
        stdin = io.StringIO(text)
        stdin.isatty = lambda: terminal  # type: ignore[method-assign]
        monkeypatch.setattr("sys.stdin", stdin)
        doctor_command.fix(settings.wanted(root), yes=yes, state=state)
        return capsys.readouterr().err

    with pytest.raises(UserError, match="nothing was changed: there is no terminal") as refused:
        answer("y\n", terminal=False)
    assert "--yes" in str(refused.value)
    assert f"{file}: 4 -> 1" in capsys.readouterr().err
    assert answer("n\n").endswith("nothing was changed\n")
    assert (file.read_text(), state.exists()) == ("4\n", False)
    assert f"{file}: 4 -> 1" in answer("y\n")
    assert file.read_text() == "1"
    assert answer("") == "no setting needs a change\n"
    file.write_text("4")
    answer("", terminal=False, yes=True)
    assert file.read_text() == "1"


def test_without_a_terminal_no_setting_is_changed(tmp_path: Path) -> None:
    before = settings.wanted()
    done = perfflow("doctor", "--fix", cwd=tmp_path)
    assert settings.wanted() == before
    assert (done.returncode, "nothing was changed" in done.stderr) == ((2, True) if before else (0, False))
    assert perfflow("doctor", "--yes", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("text", ["{", "[]", "null", "3"])
def test_a_memory_that_is_no_memory_is_neither_used_nor_removed(tmp_path: Path, text: str) -> None:
    state = tmp_path / "tuning.json"
    state.write_text(text)
    with pytest.raises(UserError, match="damaged"):
        settings.restore(state)
    assert state.read_text() == text
