"""The command lines of cargo's tools, and their parsers on unusual output. Nothing is built here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH
from perfflow.tools.adapter import Call, Effort, Pace
from perfflow.tools.rust import cargo_bench
from perfflow.tools.rust.drivers import cargo_suite
from tests.tools.harness import USAGE, call_of, tool, values_by_name
from tests.tools.tables import answers, refusals, refused_by

BUILD, BENCH = tool("cargo-build"), tool("cargo-bench")
FINISHED = {"reason": "build-finished", "success": True}
ODD = 'a (b+c) [d]/e "f" ü* $h\\i'


def _argv(**options: Any) -> tuple[str, ...]:
    return BUILD.invocations(call_of("cargo-build", Path("/tmp/out"), **options))[0].argv[3:]


RELEASE = ("--profile=release", "--bins")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, RELEASE),
        ({"bins": False, "benches": True, "profile": "bench"}, ("--profile=bench", "--bench=*")),
        ({"bins": ["a", "b"]}, ("--profile=release", "--bin=a", "--bin=b")),
        ({"bins": "a", "tests": "t"}, ("--profile=release", "--bin=a", "--test=t")),
        ({"features": ["x", "y"], "default_features": False}, (*RELEASE, "--features=x,y", "--no-default-features")),
        ({"features": "x y", "package": "p,q"}, (*RELEASE, "--package=p", "--package=q", "--features=x,y")),
        ({"workspace": True, "all_features": True}, (*RELEASE, "--workspace", "--all-features")),
        ({"locked": True, "offline": True, "args": "-j 1"}, (*RELEASE, "--locked", "--offline", "-j", "1")),
    ],
    ids=str,
)
def test_what_is_built(options: dict[str, Any], words: tuple[str, ...]) -> None:
    assert _argv(**options) == words


# Printed by divan 0.1.14 with --test, in which each benchmark runs once; (ignored) is from its source.
OF_DIVAN = """\
cargo
├─ serde_json
│  ├─ document
│  │  ├─ 0-new
│  │  ╰─ a b
│  ╰─ manifest
│     ╰─ 0-new
├─ slow (ignored)
├─ plain
╰─ toml_v05
   ╰─ document
      ├─ 0-new
      ╰─ 1-medium
"""
PATHS = ["serde_json/document/0-new", "serde_json/document/a b", "serde_json/manifest/0-new", "plain"]
PATHS += ["toml_v05/document/0-new", "toml_v05/document/1-medium"]


def test_benchmarks_of_an_older_divan_are_listed_by_a_test_run(tmp_path: Path) -> None:
    """It knows no --format=terse."""
    program = tmp_path / "cargo-1"
    (tmp_path / "tree").write_text(OF_DIVAN)
    lines = ["#!/bin/sh", 'case "$*" in', "*terse*) echo 'error: unexpected argument found' >&2; exit 2;;"]
    program.write_text("\n".join([*lines, f"*) cat {tmp_path / 'tree'};;", "esac", ""]))
    program.chmod(0o755)
    bench = {"cwd": str(tmp_path), "env": {}, "target": "cargo"}
    cargo_suite.listed(bench, {"executable": str(program), "target": {"name": "cargo"}}, [])
    assert bench["harness"] == "divan"
    assert bench["ids"] == {path: "cargo::" + path.replace("/", "::") for path in PATHS}


def test_a_criterion_that_is_too_old_is_named(tmp_path: Path) -> None:
    program = tmp_path / "cargo-1"
    program.write_text("#!/bin/sh\necho 'Gnuplot not found'; echo 'words/small: bench'; echo\n")
    program.chmod(0o755)
    bench = {"cwd": str(tmp_path), "env": {}, "target": "words"}
    with pytest.raises(SystemExit, match=r"words has criterion before 0\.4.* in Cargo\.toml"):
        cargo_suite.listed(bench, {"executable": str(program), "target": {"name": "words"}}, [])


def test_nothing_to_build() -> None:
    with pytest.raises(ToolOutputError, match="no target is selected"):
        _argv(bins=False)


def test_cargo_starts_in_the_crate(tmp_path: Path) -> None:
    build, lists = BENCH.build.preparations(
        call_of("cargo-bench", tmp_path, crate="a b", bench=["x", "y"], filter="^z")
    )
    assert (build.cwd, lists.cwd) == ("a b", "a b")
    assert build.argv[3:] == ("--no-run", "--profile=bench", "--bench=x", "--bench=y")
    assert lists.argv[-1] == "^z"


test_the_name_in_a_package_id = answers(
    cargo_suite.package_name,
    ("path+file:///a/b#name@0.1.0", "name"),
    ("path+file:///a/b#0.1.0", "b"),
    ("registry+https://github.com/rust-lang/crates.io-index#serde@1.0.0", "serde"),
    ("git+https://github.com/x/y?branch=z#1.2.3", "y"),
    ("old 0.1.0 (path+file:///a/b)", "old"),
)


def _said(*messages: object) -> str:
    return "".join(f"{json.dumps(message)}\n" for message in messages)


def _built(folder: Path, *artifacts: object) -> Call:
    """Return a call in whose folder cargo said that it built these."""
    (folder / "cargo.json").write_text(_said(*artifacts, FINISHED))
    return call_of("cargo-build", folder)


def _artifact(name: str, kind: str = "bin", package: str = "p", path: str = "") -> dict[str, Any]:
    target = {"name": name, "kind": [kind]}
    identity = f"path+file:///x#{package}@1.0.0"
    executable = path or f"/t/{package}/{kind}/{name}"
    return {"reason": "compiler-artifact", "package_id": identity, "target": target, "executable": executable}


def test_outputs_are_named_after_what_was_built(tmp_path: Path) -> None:
    lib = {**_artifact("p", "lib"), "executable": None}
    artifacts = [_artifact("hot-loop"), _artifact("hot-loop", "bench"), _artifact("x", "example"), lib]
    assert BUILD.build.results(_built(tmp_path, *artifacts)) == {
        **dict.fromkeys(("hot-loop", "hot_loop"), "/t/p/bin/hot-loop"),
        **dict.fromkeys(("bench-hot-loop", "bench_hot_loop"), "/t/p/bench/hot-loop"),
        **dict.fromkeys(("example-x", "example_x"), "/t/p/example/x"),
    }
    two_packages = _built(tmp_path, _artifact("tool", package="a"), _artifact("tool", package="b"))
    assert set(BUILD.build.results(two_packages)) == {"a-tool", "a_tool", "b-tool", "b_tool"}
    twice = _built(tmp_path, _artifact("tool"), _artifact("tool"))
    assert BUILD.build.results(twice) == {"tool": "/t/p/bin/tool"}
    assert BUILD.build.made(twice) == (Path("/t/p/bin/tool"),)
    with pytest.raises(ToolOutputError, match="two executables have the same output name bench-x"):
        BUILD.build.results(_built(tmp_path, _artifact("bench-x"), _artifact("x", "bench")))


X = _artifact("x")
test_cargo_build_refuses = refusals(
    *("cargo-build", "cargo.json"),
    (_said(FINISHED), "built no executable"),
    (_said(X), "cut short"),
    (_said({"reason": "build-finished", "success": False}), "cut short"),
    (_said({**X, "target": 1}, FINISHED), r"cargo.json: target.name is missing"),
    (_said({**X, "target": {"name": "x", "kind": []}}, FINISHED), r"cargo.json: kind\[0\] of x is missing"),
    (_said(_artifact("x\n"), FINISHED), "without a valid name"),
    (_said(_artifact("\ud800", path="/t/x"), FINISHED), "without a valid name"),
    (_said({**X, "executable": ""}, FINISHED), "cargo.json: executable is '', which is not valid"),
    (_said(_artifact("x", path="target/x"), FINISHED), "cargo.json: executable is 'target/x', which is not valid"),
    (_said(_artifact("x", path="/t/\0"), FINISHED), "cargo.json: executable is '/t/.x00', which is not valid"),
    (_said(_artifact("x", path="/t/\ud800"), FINISHED), "cargo.json: executable is '/t/.ud800', which is not valid"),
)


AMBIGUOUS = (
    "error: specification `x` is ambiguous\nhelp: re-run this command with one of the following specifications\n"
)
AMBIGUOUS_BEFORE = (
    "error: There are multiple `x` packages in your project, and the specification `x` is ambiguous.\n"
    "Please re-run this command with one of the following specifications:\n"
)
"""Output of earlier versions of cargo."""
VERSIONS = "  x@0.1.0\n  x@0.2.0\n"
NO_VALUE = "error[E0425]: no value `y`\n"
MANY = "   |\n" * 5000 + "error: could not compile `p` (lib) due to 900 errors\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("error: manifest path `x` does not exist\n", "manifest path `x` does not exist"),
        (
            f"warning: x\n{NO_VALUE} --> z\nerror: could not compile `p` (lib) due to 1 error\n",
            "could not compile `p` (lib) due to 1 error: no value `y`",
        ),
        (
            f"{NO_VALUE}  in this scope\n  --> src/lib.rs:3:5\n   |\nerror: other\n --> src/b.rs:1:1\n{MANY}",
            "could not compile `p` (lib) due to 900 errors: no value `y` (src/lib.rs:3:5)",
        ),
        ("error: cannot update the lock file /x because --locked was passed to prevent this\n", "the new Cargo.lock"),
        ("error: failed to get `x`\n\nCaused by:\n  Could not resolve host: index.crates.io\n", "`offline: true`"),
        (AMBIGUOUS + VERSIONS, "replace the name by one of these: x@0.1.0, x@0.2.0"),
        (AMBIGUOUS_BEFORE + VERSIONS, "replace the name by one of these: x@0.1.0, x@0.2.0"),
        ("   Compiling x\n", ""),
    ],
)
def test_why_cargo_failed(said: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(said)
    found = cargo_bench.why_cargo_failed(tmp_path)
    assert reason in found
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    "said",
    [
        "thread 'main' panicked at benches/odd.rs:6:50:\nno input\nnote: run with `RUST_BACKTRACE=1`\n",
        "\nthread 'main' (41) panicked at benches/odd.rs:6:50:\nno input\n",
        "thread 'main' panicked at 'no input', benches/odd.rs:6:50\nnote: run with `RUST_BACKTRACE=1`\n",
    ],
)
def test_what_a_panic_said(said: str, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text(f"Benchmarking x\n{said}")
    assert cargo_bench.panic(tmp_path) == "it panicked: no input"


LIBTEST = """
running 2 tests
test a::mixes   ... bench:       1,234.50 ns/iter (+/- 12.03) = 3,240 MB/s
test a test     ... ignored
test plain      ... bench:          97 ns/iter (+/- 1)

test result: ok. 0 passed; 0 failed; 1 ignored; 2 measured; 0 filtered out; finished in 1.00s
"""


def test_libtest() -> None:
    assert values_by_name(cargo_bench.libtest_readings(LIBTEST)) == pytest.approx(
        {("a::mixes", "time"): 1.2345e-6, ("a::mixes", "throughput"): 3.24e9, ("plain", "time"): 97e-9}
    )


def _libtest(text: str) -> None:
    list(cargo_bench.libtest_readings(text))


test_libtest_refuses = refused_by(
    _libtest,
    (LIBTEST[:150], "cut short"),
    (LIBTEST.replace("97 ns", "x ns"), "2 benchmarks were measured, but 1 results found"),
    (LIBTEST.replace("ignored\n", "FAILED\n", 1), "benchmark a test failed"),
    (LIBTEST.replace("97 ns", "0 ns"), "time of plain is 0"),
    (LIBTEST.replace("2 measured", f"{'1' * 5000} measured"), "1111 benchmarks were measured, but 2 results found"),
    (LIBTEST.replace("result: ok", "result: FAILED"), "cut short"),
)
DIVAN = """\
odd      fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ a  b  1.5 s         │ 2 m           │ 1.25 h        │ 0.5 d         │ 1       │ 1
│        3.5 KB/s      │ 3 B/s         │ 2.5 MiB/s     │ 2 GB/s        │         │
│        1 Gchar/s     │ 1 Gchar/s     │ 4.5 Gchar/s   │ 1 Gchar/s     │         │
│        1 Gitem/s     │ 1 Gitem/s     │ 1 Gitem/s     │ 1 Gitem/s     │         │
│        max alloc:    │               │               │               │         │
│          9 B         │ 9 B           │ 9 B           │ 9 B           │         │
├─ c                   │               │               │               │         │
│  ╰─ d               │               │               │               │         │
│     ╰─ │ e  1.5 ms    │ 2 µs          │ 3 µs          │ 4 ns          │ 10      │ 40
╰─ f     (ignored)     │               │               │               │         │

more     fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ g     1.5 ns        │ 1.5 ns        │ 1.5 ns        │ 1.5 ns        │ 1       │ 1
         inf B/s       │ inf B/s       │ inf B/s       │ inf B/s       │         │
"""


def test_divan() -> None:
    assert values_by_name(cargo_bench.divan_readings(DIVAN)) == pytest.approx(
        {
            ("odd::a  b", "time"): 4500.0,
            ("odd::a  b", "throughput"): 2.5 * 2**20,
            ("odd::a  b", "rate"): 4.5e9,
            ("odd::c::d::│ e", "time"): 3e-6,
            ("more::g", "time"): 1.5e-9,
        }
    )
    for old, new, reason in (
        ("│ 1.5 ns        │ 1.5 ns        │ 1", "│ 1 ns  │ 0 ns  │ 1", "time of more::g is 0"),
        ("g ", "t=4 ", "DIVAN_THREADS: 4"),
    ):
        with pytest.raises(ToolOutputError, match=reason):
            list(cargo_bench.divan_readings(DIVAN.replace(old, new)))


def _suite(folder: Path, **change: object) -> Call:
    bench = {"program": "/p/0-odd", "target": "odd", "cwd": "/crate", "env": {"A": "b"}, "harness": "criterion"}
    one = {**bench, "ids": {ODD: ODD, "odd/shared": "shared"}, **change}
    other = {**bench, "program": "/p/1-plain", "harness": "libtest", "ids": {"plain/shared": "shared"}}
    (folder / "suite.json").write_text(json.dumps({"benches": [one, other]}))
    return call_of("cargo-bench", folder)


def test_each_executable_runs_where_cargo_would_run_it(tmp_path: Path) -> None:
    call = _suite(tmp_path)
    first, second = BENCH.invocations(replace(call, effort=Effort.BRIEF))
    assert (first.argv[0], first.cwd, first.env["A"]) == ("/p/0-odd", "/crate", "b")
    assert first.env["CRITERION_HOME"].startswith(str(tmp_path))
    # The time of one is not known yet.
    assert "--sample-size=10" in first.argv
    assert second.argv == ("/p/1-plain", "--bench")
    assert BENCH.build.executed(call) == (Path("/p/0-odd"), Path("/p/1-plain"))


def test_one_benchmark_alone(tmp_path: Path) -> None:
    call = _suite(tmp_path)
    (odd,) = BENCH.invocations(replace(call, chosen=(ODD,)))
    assert odd.argv[-1] == r'^a \(b\+c\) \[d\]/e "f" ü\* \$h\\i$'
    (plain,) = BENCH.invocations(replace(call, chosen=("plain/shared",)))
    assert plain.argv[1:] == ("--bench", "shared", "--exact")
    with pytest.raises(ToolOutputError, match="'gone' does not exist"):
        BENCH.invocations(replace(call, chosen=("gone",)))


@pytest.mark.parametrize("change", [{"ids": 1}, {"ids": {"a": 1}}, {"program": None}, {"env": []}], ids=str)
def test_a_suite_that_is_nonsense(change: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"^suite\.json: benches\[0\]\.(ids|program|env)\b.* is not "):
        BENCH.invocations(_suite(tmp_path, **change))


def _result(
    call: Call, times: list[float], iterations: list[float], name: str = "shared", title: str = "", **about: object
) -> None:
    """Write what criterion leaves of one benchmark."""
    folder = call.folder / "criterion" / "0" / name[:9] / "new"
    folder.mkdir(parents=True)
    known = {"full_id": name, "title": title or name, "throughput": None, **about}
    (folder / "benchmark.json").write_text(json.dumps(known))
    (folder / "sample.json").write_text(json.dumps({"times": times, "iters": iterations}))


@pytest.mark.parametrize(
    ("throughput", "metric", "value"),
    [
        ({"Bytes": 500}, "throughput", 500 / 2e-9),
        ({"BytesDecimal": 500}, "throughput", 500 / 2e-9),
        ({"Bits": 8}, "throughput", 1 / 2e-9),
        ({"Elements": 10}, "rate", 10 / 2e-9),
    ],
)
def test_throughput_in_base_units(throughput: object, metric: str, value: float, tmp_path: Path) -> None:
    call = replace(_suite(tmp_path), chosen=("odd/shared",))
    _result(call, [20.0, 40.0, 60.0], [10.0, 20.0, 30.0], throughput=throughput)
    time, rate = BENCH.parse(call, USAGE).readings
    assert (time.benchmark, time.metric, time.inner[BATCH]) == ("odd/shared", "time", 20)
    assert (time.value, rate.value) == pytest.approx((2e-9, value))
    assert rate.metric == metric


def test_a_long_id_is_known_by_what_the_list_shows(tmp_path: Path) -> None:
    whole = "long " * 30 + "x"
    cut = whole[:100] + "..."
    call = replace(_suite(tmp_path, ids={cut: cut}), chosen=(cut,))
    (step,) = BENCH.invocations(call)
    assert step.argv[-1] == f"^{whole[:100]}"
    _result(call, [1.0, 2.0], [1.0, 2.0], whole, cut)
    assert [reading.benchmark for reading in BENCH.parse(call, USAGE).readings] == [cut]


def test_a_group_with_its_own_number_of_samples_is_named(tmp_path: Path) -> None:
    call = replace(_suite(tmp_path), chosen=("odd/shared",), effort=Effort.BRIEF, pace=Pace(1e-6, 1e-3))
    _result(call, [1.0] * 20, [1.0] * 20)
    (warning,) = BENCH.parse(call, USAGE).warnings
    assert "takes 20 samples instead of 100" in warning


def test_what_was_measured_is_what_was_listed(tmp_path: Path) -> None:
    call = replace(_suite(tmp_path), effort=Effort.BRIEF)
    _result(call, [1.0] * 100, [1.0] * 100)
    (tmp_path / "stderr").write_text("Benchmarking shared: Analyzing\n")
    with pytest.raises(ToolOutputError, match=r"^the benchmark a \(b\+c\) .* left no result$"):
        BENCH.parse(call, USAGE)
    with pytest.raises(ToolOutputError, match="shared was measured, but was not listed"):
        BENCH.parse(replace(call, chosen=(ODD,)), USAGE)
    one = _suite(tmp_path, ids={"shared": "shared"})
    (tmp_path / "libtest-1.txt").write_text(LIBTEST.replace("a::mixes ", "other    ").replace("plain ", "shared"))
    with pytest.raises(ToolOutputError, match="other was measured, but was not listed"):
        BENCH.parse(one, USAGE)


def test_a_benchmark_of_libtest_that_is_ignored(tmp_path: Path) -> None:
    call = _suite(tmp_path, harness="libtest", ids={"a::mixes": "a::mixes", "a test": "a test", "plain": "plain"})
    content = json.loads((tmp_path / "suite.json").read_text())
    (tmp_path / "suite.json").write_text(json.dumps({"benches": content["benches"][:1]}))
    (tmp_path / "libtest-0.txt").write_text(LIBTEST)
    assert {reading.benchmark for reading in BENCH.parse(call, USAGE).readings} == {"a::mixes", "plain"}


def test_a_benchmark_that_left_nothing(tmp_path: Path) -> None:
    call = replace(_suite(tmp_path), chosen=(ODD,))
    (tmp_path / "stderr").write_text("thread 'main' panicked at x.rs:1:1:\nno input\n")
    with pytest.raises(ToolOutputError, match="it panicked: no input"):
        BENCH.parse(call, USAGE)
