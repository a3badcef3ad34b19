"""``perfflow doctor`` on the real machine, and its rules on made-up ones."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from perfflow.errors import UserError
from perfflow.machine import tuning
from perfflow.machine.noise import Finding, NoiseClass, SelfTest, State, classify, examine, self_test
from tests.cli.shell import perfflow


def fake_root(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def found(root: Path, name: str) -> Finding:
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
        assert states[name] is State.UNKNOWN


def test_settings_are_read(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__intel_pstate__no_turbo="1\n",
        proc__sys__kernel__randomize_va_space="0\n",
        sys__class__power_supply__BAT0__status="Discharging\n",
    )
    assert found(root, "frequency governor").state is State.WARN
    assert found(root, "turbo").state is State.OK
    assert "randomize_va_space=2" in found(root, "address randomization").remedy
    assert found(root, "power").state is State.WARN


def test_steal_and_load_are_rates_between_two_looks(tmp_path: Path) -> None:
    stat = tmp_path / "proc" / "stat"
    stat.parent.mkdir()
    stat.write_text("cpu 100 0 0 1000 0 0 0 0 0 0\n")

    def pause(_: float) -> None:
        stat.write_text("cpu 150 0 0 1130 0 0 0 20 0 0\n")

    facts = {item.name: item for item in examine(tmp_path, pause=pause)}
    assert facts["steal"].state is State.WARN
    assert facts["steal"].value == "10.0%"
    assert facts["other load"].value == "35% of all cores"


@pytest.mark.parametrize(
    ("findings", "test", "kind"),
    [
        ([], SelfTest(1.02, 0.99), NoiseClass.QUIET),
        ([], SelfTest(1.3, 0.99), NoiseClass.BUSY),
        ([Finding("other load", "", State.WARN)], SelfTest(1.02, 0.99), NoiseClass.BUSY),
        ([Finding("turbo", "", State.WARN)], SelfTest(1.02, 0.99), NoiseClass.QUIET),
        ([], SelfTest(2.0, 0.99), NoiseClass.HOSTILE),
        ([], SelfTest(1.02, 0.6), NoiseClass.HOSTILE),
        ([Finding("steal", "", State.BAD)], SelfTest(1.02, 0.99), NoiseClass.HOSTILE),
    ],
)
def test_classes(findings: list[Finding], test: SelfTest, kind: NoiseClass) -> None:
    assert classify(findings, test) is kind


def test_the_self_test_sees_what_disturbs_it() -> None:
    """A clock that moves by 4 ms at each look, and by 40 ms at every seventh."""
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
    changed = tuning.fix(root, state)
    assert [path.name for path, _, _ in changed] == ["scaling_governor", "perf_event_paranoid"]
    assert governors[0].read_text() == "performance"
    # A crash, then somebody fixes again: the original stays what is restored.
    governors[0].write_text("ondemand")
    tuning.fix(root, state)
    restored = dict(tuning.restore(state))
    assert restored[governors[0]] == governors[0].read_text() == "powersave"
    assert governors[1].read_text() == "performance\n"
    assert not state.exists()
    assert tuning.restore(state) == []


def test_a_damaged_memory_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "tuning.json"
    state.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        tuning.restore(state)
