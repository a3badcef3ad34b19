"""``perfflow doctor`` on the real machine, and its rules on made-up ones."""

from __future__ import annotations

import io
import itertools
import json
import time
from pathlib import Path

import pytest

from perfflow.cli import doctor_command
from perfflow.machine import settings
from perfflow.machine.noise import NoiseClass, NoiseSelfTest, classify, examine, quick_check, self_test
from perfflow.machine.noise_findings import FindingState, NoiseFinding
from perfflow.machine.settings import timer_step
from perfflow.model.errors import UserError
from tests.cli.shell import perfflow


def fake_root(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def found(root: Path, name: str) -> NoiseFinding:
    return next(item for item in examine(root, pause=lambda _: None) if item.name == name)


def test_it_says_what_it_sees_here(tmp_path: Path) -> None:
    done = perfflow("doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["class"] in ("quiet", "busy", "hostile")
    assert said["self_test"]["spread"] >= 1
    assert perfflow("doctor", cwd=tmp_path).stdout.startswith("this machine is ")


def test_what_cannot_be_seen_is_unknown_and_never_ok(tmp_path: Path) -> None:
    states = {item.name: item.state for item in examine(tmp_path, pause=lambda _: None)}
    for name in ("frequency governor", "turbo", "thermal throttling", "steal", "other load", "address randomization"):
        assert states[name] is FindingState.UNKNOWN


def test_settings_are_read(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__intel_pstate__no_turbo="1\n",
        proc__sys__kernel__randomize_va_space="0\n",
        sys__class__power_supply__BAT0__status="Discharging\n",
    )
    assert found(root, "frequency governor").state is FindingState.WARN
    assert found(root, "turbo").state is FindingState.OK
    assert "randomize_va_space=2" in found(root, "address randomization").remedy
    assert found(root, "power").state is FindingState.WARN


def test_steal_and_load_are_rates_between_two_looks(tmp_path: Path) -> None:
    stat = tmp_path / "proc" / "stat"
    stat.parent.mkdir()
    stat.write_text("cpu 100 0 0 1000 0 0 0 0 0 0\n")

    def pause(_: float) -> None:
        stat.write_text("cpu 150 0 0 1130 0 0 0 20 0 0\n")

    facts = {item.name: item for item in examine(tmp_path, pause=pause)}
    assert facts["steal"].state is FindingState.WARN
    assert facts["steal"].value == "10.0%"
    assert facts["other load"].value == "35% of all cores"


@pytest.mark.parametrize(
    ("findings", "test", "kind"),
    [
        ([], NoiseSelfTest(1.02, 0.99), NoiseClass.QUIET),
        ([], NoiseSelfTest(1.3, 0.99), NoiseClass.BUSY),
        ([NoiseFinding("other load", "", FindingState.WARN)], NoiseSelfTest(1.02, 0.99), NoiseClass.BUSY),
        ([NoiseFinding("turbo", "", FindingState.WARN)], NoiseSelfTest(1.02, 0.99), NoiseClass.QUIET),
        ([], NoiseSelfTest(2.0, 0.99), NoiseClass.HOSTILE),
        ([], NoiseSelfTest(1.02, 0.6), NoiseClass.HOSTILE),
        ([NoiseFinding("steal", "", FindingState.BAD)], NoiseSelfTest(1.02, 0.99), NoiseClass.HOSTILE),
    ],
)
def test_classes(findings: list[NoiseFinding], test: NoiseSelfTest, kind: NoiseClass) -> None:
    assert classify(findings, test) is kind


def test_the_self_test_sees_what_disturbs_it() -> None:
    """A clock that advances by 4 ms per call, and by 40 ms at every seventh call."""
    times = itertools.accumulate(0.04 if look % 7 == 0 else 0.004 for look in itertools.count(1))
    disturbed = self_test(now=lambda: next(times), cpu=lambda: 0.0)
    assert disturbed.spread > 1.1
    assert disturbed.cpu_share == 0.0


def test_fix_and_restore_put_back_exactly_what_was_there(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path / "root",
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__cpu1__cpufreq__scaling_governor="performance\n",
        proc__sys__kernel__perf_event_paranoid="4\n",
    )
    governors = [root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor" for core in (0, 1)]
    state = tmp_path / "state" / "tuning.json"
    changed = settings.wanted(root)
    settings.fix(changed, state)
    assert [path.name for path, _, _ in changed] == ["scaling_governor", "perf_event_paranoid"]
    assert governors[0].read_text() == "performance"
    # A crash, then another --fix: --restore still restores the original.
    governors[0].write_text("ondemand")
    settings.fix(settings.wanted(root), state)
    restored = dict(settings.restore(state))
    assert restored[governors[0]] == governors[0].read_text() == "powersave"
    assert governors[1].read_text() == "performance\n"
    assert not state.exists()
    assert settings.restore(state) == []


def test_a_fix_is_shown_and_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = fake_root(tmp_path / "root", proc__sys__kernel__perf_event_paranoid="4\n")
    file, state = root / "proc/sys/kernel/perf_event_paranoid", tmp_path / "tuning.json"

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


def test_a_damaged_memory_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "tuning.json"
    state.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        settings.restore(state)


VIRTUAL = {"proc__cpuinfo": "flags\t: fpu hypervisor lm\n"}
BARE = {"proc__cpuinfo": "flags\t: fpu lm\n"}


def test_nothing_is_ok_on_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    """The remaining ok findings do not come from the kernel's files."""
    fine = {item.name for item in examine(tmp_path, pause=lambda _: None) if item.state is FindingState.OK}
    assert fine <= {"cores", "timer step"}


def test_steal_that_was_never_counted_is_unknown_on_a_virtual_machine(tmp_path: Path) -> None:
    stat = "cpu 100 0 0 1000 0 0 0 {} 0 0\n"
    for kind, ever, state in (
        (VIRTUAL, 0, FindingState.UNKNOWN),
        (VIRTUAL, 7, FindingState.OK),
        (BARE, 0, FindingState.OK),
    ):
        root = fake_root(tmp_path, **kind, proc__stat=stat.format(ever))

        def pause(_: float, root: Path = root, ever: int = ever) -> None:
            (root / "proc/stat").write_text(f"cpu 110 0 0 1090 0 0 0 {ever} 0 0\n")

        assert next(item for item in examine(root, pause=pause) if item.name == "steal").state is state


def test_hidden_siblings_and_batteries_of_the_host_are_unknown(tmp_path: Path) -> None:
    off = {"sys__devices__system__cpu__smt__active": "0\n", "sys__class__power_supply__none__type": "Mains\n"}
    root = fake_root(tmp_path, **VIRTUAL, **off)
    (root / "sys/class/power_supply/none/type").unlink()
    (root / "sys/class/power_supply/none").rmdir()
    assert found(root, "hyper-threads").state is FindingState.UNKNOWN
    assert found(root, "power").state is FindingState.UNKNOWN
    assert found(root, "hypervisor").state is FindingState.WARN
    fake_root(tmp_path, **BARE)
    assert found(root, "hyper-threads").state is FindingState.OK
    assert found(root, "power").value == "no battery"
    assert found(root, "hypervisor").state is FindingState.OK


@pytest.mark.parametrize(
    ("name", "files", "remedy"),
    [
        ("hyper-threads", {"sys__devices__system__cpu__smt__active": "1"}, "cpu/smt/control"),
        (
            "transparent huge pages",
            {"sys__kernel__mm__transparent_hugepage__enabled": "[always] madvise never"},
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        (
            "clock source",
            {
                "sys__devices__system__clocksource__clocksource0__current_clocksource": "hpet",
                "sys__devices__system__clocksource__clocksource0__available_clocksource": "hpet tsc acpi_pm",
            },
            "echo tsc | sudo tee",
        ),
        ("turbo", {"sys__devices__system__cpu__cpufreq__boost": "1"}, "perfflow doctor --fix"),
        ("perf access", {"proc__sys__kernel__perf_event_paranoid": "4"}, "perfflow doctor --fix"),
        ("hardware counters", {"sys__bus__event_source__devices__software": ""}, ""),
        ("load average", {"proc__loadavg": "999.00 1 1 1/2 3"}, "ps -eo"),
        (
            "frequency governor",
            {
                "sys__devices__system__cpu__cpu0__cpufreq__scaling_governor": "performance",
                "sys__devices__system__cpu__cpu1__cpufreq__scaling_governor": "powersave",
            },
            "perfflow doctor --fix",
        ),
    ],
)
def test_what_hurts_is_a_warning_with_its_remedy(tmp_path: Path, name: str, files: dict[str, str], remedy: str) -> None:
    seen = found(fake_root(tmp_path, **files), name)
    assert seen.state is FindingState.WARN
    assert remedy in seen.remedy
    assert seen.why


@pytest.mark.parametrize(
    ("group", "files"),
    [
        ("0::/a\n", {"sys__fs__cgroup__a__cpu.max": "150000 100000\n"}),
        (
            "2:cpu,cpuacct:/a\n0::/\n",
            {
                "sys__fs__cgroup__cpu,cpuacct__a__cpu.cfs_quota_us": "150000\n",
                "sys__fs__cgroup__cpu,cpuacct__a__cpu.cfs_period_us": "100000\n",
            },
        ),
    ],
)
def test_a_limit_of_the_own_control_group_is_seen(tmp_path: Path, group: str, files: dict[str, str]) -> None:
    root = fake_root(tmp_path, proc__self__cgroup=group, **files)
    limit = found(root, "cpu limit")
    assert (limit.value, limit.state) == ("1.5 cores", FindingState.WARN)
    assert "sudo tee" in limit.remedy


def test_throttling_in_the_own_control_group_is_hostile(tmp_path: Path) -> None:
    root = fake_root(tmp_path, proc__self__cgroup="0::/a\n", **{"sys__fs__cgroup__a__cpu.stat": "nr_throttled 3\n"})

    def pause(_: float) -> None:
        (root / "sys/fs/cgroup/a/cpu.stat").write_text("nr_throttled 5\n")

    quota = next(item for item in examine(root, pause=pause) if item.name == "quota")
    assert (quota.value, quota.state) == ("throttled 2 times", FindingState.BAD)


def test_a_clock_with_coarse_steps_and_one_that_stands_still() -> None:
    ticks = itertools.count(step=10_000)
    assert timer_step(lambda: next(ticks)).state is FindingState.WARN
    assert timer_step(lambda: 7).state is FindingState.BAD


def test_the_self_test_ends_early_on_a_clock_that_says_so() -> None:
    times = itertools.count(step=0.05)
    looks = [0]

    def now() -> float:
        looks[0] += 1
        return next(times)

    self_test(now=now, cpu=lambda: 0.0, limit=0.2)
    assert looks[0] < 40


def test_a_glance_does_not_blame_the_machine_for_its_own_work(tmp_path: Path) -> None:
    """Half a second of own work on one of two cores is 50 of 100 ticks."""
    root = fake_root(tmp_path, proc__stat="cpu 100 0 0 1000 0 0 0 5 0 0\n")

    def test() -> NoiseSelfTest:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        (root / "proc/stat").write_text("cpu 150 0 0 1050 0 0 0 5 0 0\n")
        return NoiseSelfTest(1.02, 0.99)

    seen = quick_check(root, test)
    load = next(item for item in seen.findings if item.name == "other load")
    assert load.state is FindingState.OK
    assert seen.kind is NoiseClass.QUIET
    assert {item.name for item in seen.findings if item.state is FindingState.UNKNOWN} == {
        "cpu pressure",
        "swap",
        "quota",
    }


def test_fix_sets_huge_pages_and_leaves_what_is_fine(tmp_path: Path) -> None:
    """A real file would show the choice in brackets. This one shows the written text."""
    root = fake_root(
        tmp_path / "root",
        sys__kernel__mm__transparent_hugepage__enabled="[always] madvise never\n",
        proc__sys__kernel__perf_event_paranoid="-1\n",
    )
    state = tmp_path / "tuning.json"
    pages = root / "sys/kernel/mm/transparent_hugepage/enabled"
    changes = settings.wanted(root)
    assert changes == [(pages, "always", "madvise")]
    settings.fix(changes, state)
    assert settings.restore(state) == [(pages, "always")]
    assert pages.read_text() == "always"


def test_what_could_not_be_put_back_stays_remembered(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path / "root",
        proc__sys__kernel__perf_event_paranoid="4\n",
        proc__sys__kernel__randomize_va_space="0\n",
    )
    state = tmp_path / "tuning.json"
    settings.fix(settings.wanted(root), state)
    gone = root / "proc/sys/kernel/perf_event_paranoid"
    gone.unlink()
    gone.mkdir()
    with pytest.raises(UserError, match="perf_event_paranoid"):
        settings.restore(state)
    assert (root / "proc/sys/kernel/randomize_va_space").read_text() == "0"
    gone.rmdir()
    assert settings.restore(state) == [(gone, "4")]
    assert not state.exists()


@pytest.mark.parametrize("text", ["{", "[]", "null", "3"])
def test_a_memory_that_is_no_memory_is_neither_used_nor_removed(tmp_path: Path, text: str) -> None:
    state = tmp_path / "tuning.json"
    state.write_text(text)
    with pytest.raises(UserError, match="damaged"):
        settings.restore(state)
    assert state.read_text() == text
