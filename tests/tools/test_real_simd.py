"""simd-share on real programs, scalar and vectorized, and on programs without a result."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from tests.cli.shell import perfflow
from tests.tools.harness import PROGRAMS, Ran, parsed_of, run, values_of

pytestmark = pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="x86 and AArch64 alone")
SCALAR, VECTOR = ["-O2", "-fno-tree-vectorize"], ["-O3", "-march=native"]
ROUNDS = "300000"
RUST = """
fn main() {{
    let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let (x, mut y) = (vec![1.0f32; 4096], vec![0.0f32; 4096]);
    let mut total = 0.0f32;
    for _ in 0..rounds {{ total += std::hint::black_box({call}); }}
    eprintln!("{{}} {{}}", total, y[7]);
    y.clear();
}}
#[inline(never)]
pub fn dot(x: &[f32], y: &mut [f32]) -> f32 {{ x.iter().zip(y).map(|(a, b)| a * *b).sum() }}
#[inline(never)]
pub fn add(x: &[f32], y: &mut [f32]) -> f32 {{ for (a, b) in x.iter().zip(y.iter_mut()) {{ *b += a; }} y[0] }}
"""

CALLS = """
import ctypes, sys
saxpy = ctypes.CDLL(sys.argv[1]).saxpy
saxpy.argtypes = [ctypes.c_long, ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p]
x, y = (ctypes.c_float * 4096)(), (ctypes.c_float * 4096)()
for _ in range(200000): saxpy(4096, 0.5, x, y)
"""


def _compiled(folder: Path, *flags: str) -> str:
    target = folder / "saxpy"
    subprocess.run(["cc", "-g", *flags, "-o", target, PROGRAMS / "saxpy.c"], check=True, timeout=900)
    return str(target)


def _share(ran: Ran) -> float:
    return values_of(parsed_of(ran))["simd_share"]


def test_a_scalar_loop_of_c(tmp_path: Path) -> None:
    parsed = parsed_of(run("simd-share", tmp_path / "out", _compiled(tmp_path, *SCALAR), ROUNDS))
    assert values_of(parsed) == {"simd_share": 0, "vector_width": 1}
    first = parsed.hotspots[0]
    assert (first.location, Path(first.file).name, first.line) == ("saxpy", "saxpy.c", 6)
    assert re.match(r"\d scalar arithmetic instructions? in the loop of \d+\b.*; estimate\Z", first.cause)


@pytest.mark.parametrize("linked", [["-pie"], ["-no-pie"], ["-static"], ["-static-pie"], ["-s"]], ids=str)
def test_a_vectorized_loop_of_c(linked: list[str], tmp_path: Path) -> None:
    parsed = parsed_of(run("simd-share", tmp_path / "out", _compiled(tmp_path, *VECTOR, *linked), "1000000"))
    assert values_of(parsed)["simd_share"] > 0.9
    assert values_of(parsed)["vector_width"] >= 4
    assert "packed" in parsed.hotspots[0].cause
    assert any("without symbols" in text for text in parsed.warnings) == (linked == ["-s"])


def test_names_that_look_like_perf_s_own_text(tmp_path: Path) -> None:
    name, target = "we ird) (/x+0x3 <%zmm1> [kernel]", str(tmp_path / "pro gram (x) <y>")
    for argv in (
        ["cc", *SCALAR, "-c", "-o", f"{target}.o", str(PROGRAMS / "saxpy.c")],
        ["objcopy", "--redefine-sym", f"saxpy={name}", f"{target}.o"],
        ["cc", "-o", target, f"{target}.o"],
    ):
        subprocess.run(argv, check=True, timeout=900)
    parsed = parsed_of(run("simd-share", tmp_path / "out", target, ROUNDS))
    assert parsed.hotspots[0].location == f"{name} (pro gram (x) <y>)"
    assert values_of(parsed)["simd_share"] == 0


def test_a_library_that_is_mapped_while_it_runs(tmp_path: Path) -> None:
    _compiled(tmp_path, *VECTOR, "-shared", "-fPIC", "-DSHARED")
    parsed = parsed_of(run("simd-share", tmp_path / "out", sys.executable, "-c", CALLS, str(tmp_path / "saxpy")))
    assert values_of(parsed)["simd_share"] > 0.9
    assert any("an interpreter, whose" in text for text in parsed.warnings)


@pytest.mark.skipif(not shutil.which("rustc"), reason="rustc is not installed")
def test_loops_of_rust(tmp_path: Path) -> None:
    shares = {}
    for name in ("dot", "add"):
        (tmp_path / f"{name}.rs").write_text(RUST.format(call=f"{name}(std::hint::black_box(&x), &mut y)"))
        argv = ["rustc", "-O", "-Adead_code", "-Cdebuginfo=1", "-o", str(tmp_path / name), str(tmp_path / f"{name}.rs")]
        subprocess.run(argv, check=True, timeout=900)
        rounds = {"dot": "100000", "add": "500000"}[name]
        shares[name] = _share(run("simd-share", tmp_path / f"{name}-out", str(tmp_path / name), rounds))
    # A sum of floats in program order cannot be vectorized.
    assert shares["dot"] < 0.1
    assert shares["add"] > 0.9


@pytest.mark.skipif(not shutil.which("mojo"), reason="mojo is not installed")
def test_loops_of_mojo(tmp_path: Path) -> None:
    program = str(tmp_path / "saxpy")
    argv = ["mojo", "build", "-O3", "-o", program, str(PROGRAMS / "saxpy.mojo")]
    subprocess.run(argv, check=True, timeout=900, capture_output=True)
    assert _share(run("simd-share", tmp_path / "scalar", program, "200000", "scalar")) < 0.1
    assert _share(run("simd-share", tmp_path / "vector", program, "2000000")) > 0.9


def test_integers_have_no_share(tmp_path: Path) -> None:
    parsed = parsed_of(run("simd-share", tmp_path / "out", _compiled(tmp_path, *SCALAR), "200000", "integers"))
    assert not parsed.readings
    assert parsed.hotspots[0].cause.startswith("no floating-point or vector arithmetic in the loop")
    assert any(text.startswith("simd_share is undefined") for text in parsed.warnings)


def test_python_is_the_interpreter_s_code(tmp_path: Path) -> None:
    code = "s = 0.0\nfor i in range(3000000): s += i * 0.5"
    parsed = parsed_of(run("simd-share", tmp_path / "out", sys.executable, "-c", code))
    assert not parsed.readings
    assert any("an interpreter, whose" in text for text in parsed.warnings)


def test_without_objdump_it_says_what_helps(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("perf", "true"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    ran = run(
        "simd-share", tmp_path / "out", sys.executable, "-c", "sum(range(9**7))", env={"PATH": str(tmp_path / "bin")}
    )
    assert ran.status
    with pytest.raises(ToolOutputError, match="apt-get install binutils"):
        ran.parse()


def test_a_recording_that_is_cut_is_refused(tmp_path: Path) -> None:
    ran = run("simd-share", tmp_path / "out", _compiled(tmp_path, *SCALAR), ROUNDS)
    driver = ran.adapter.invocations(ran.call)[1]
    recording = tmp_path / "out" / "perf.data"
    content = recording.read_bytes()
    for share in (0.0, 0.001, 0.3, 0.7, 0.99):
        recording.write_bytes(content[: int(len(content) * share)])
        done = subprocess.run(driver.argv, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 1
        assert "recording" in json.loads(done.stdout)["error"] or "cut short" in json.loads(done.stdout)["error"]


def test_the_report_has_simd_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    scalar, vector = _compiled(tmp_path / "a", *SCALAR), _compiled(tmp_path / "b", *VECTOR)
    step = {
        "id": "saxpy",
        "uses": "simd-share",
        "with": {"command": [scalar, ROUNDS]},
        "candidate": {"with": {"command": [vector, "1000000"]}},
    }
    flow = {"perfflow": 1, "targets": {"saxpy": {"simd_share": "≥90%"}}, "stages": {"profile": [step]}}
    (tmp_path / "flow.yaml").write_text(json.dumps(flow))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, path=os.environ["PATH"], measured=True)
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["targets"][0]["status"] in {"met", "unproven"}, done.stdout
    section = (tmp_path / "out" / "report.md").read_text().partition("### Profiling Results")[2].partition("\n### ")[0]
    assert re.search(r"`simd_share` \| 0% → (?:9\d(?:\.\d+)?|100)%", section)
    assert "`vector_width`" in section
