"""simd-share: instructions in text of real assemblers and disassemblers, and shares of real programs.

``instructions/*.txt`` are the tables, ``*.objdump`` their disassembly by GNU objdump 2.40. Update it with
``PERFFLOW_CAPTURE=1 pytest tests/tools/test_simd_share.py``.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.linux import simd_share
from perfflow.tools.linux.simd_share import Arithmetic, Flow, InstructionSet
from tests.long import rest_long
from tests.tools.flows import result_in, run_flow
from tests.tools.harness import PROGRAMS, parsed_of, run, values_of
from tests.tools.tables import answers, refused_by

Measure = Callable[..., Parsed]
TABLES = Path(__file__).parent / "instructions"
MACHINES = {"x86-64": InstructionSet.X86, "aarch64": InstructionSet.AARCH64}
EXTENSIONS = {"aarch64": ["-march=armv9-a+bf16+fp16+dotprod+sve2+i8mm+fp16fml"]}
OF_LLVM = ["--mattr=+v9a,+sve2,+fullfp16,+bf16,+dotprod,+i8mm,+fp16fml"]
CROSS = {"aarch64": "aarch64-linux-gnu-"}
each = pytest.mark.parametrize("name", MACHINES)


def _table(name: str) -> list[tuple[str, Arithmetic | None]]:
    lines = (TABLES / f"{name}.txt").read_text().splitlines()
    rows = [line.rpartition("|") for line in lines if line and not line.startswith("#")]
    return [(text.strip(), _wanted(*told.split())) for text, _, told in rows]


def _wanted(kind: str = "", element: str = "", lanes: str = "0", register: str = "") -> Arithmetic | None:
    return Arithmetic(kind == "packed", element.strip("-"), int(lanes), register) if kind else None


def _check(name: str, listing: list[str]) -> None:
    """Read what is known of a listing; a disassembler may show an unknown instruction as several."""
    rows = dict(zip(map(_address, _captured(name)), _table(name), strict=True))
    known = [(rows[_address(line)], line) for line in listing if _address(line) in rows and "<unknown>" not in line]
    got = simd_share.read(MACHINES[name], [line for _, line in known])
    assert [item.arithmetic for item in got] == [wanted for (_, wanted), _ in known]
    assert len(known) > 100


def _captured(name: str) -> list[str]:
    return (TABLES / f"{name}.objdump").read_text().splitlines()


def _address(line: str) -> int:
    return int(line.partition(":")[0], 16)


@each
def test_captured_disassembly(name: str) -> None:
    _check(name, _captured(name))


@each
def test_real_assembler_and_objdump(name: str, tmp_path: Path) -> None:
    listing = _disassembled(name, tmp_path, f"{CROSS.get(name, '')}objdump")
    if os.environ.get("PERFFLOW_CAPTURE"):
        (TABLES / f"{name}.objdump").write_text("".join(f"{line}\n" for line in listing))
    _check(name, listing)


@each
def test_real_llvm_objdump(name: str, tmp_path: Path) -> None:
    _check(name, _disassembled(name, tmp_path, "llvm-objdump"))


def _disassembled(name: str, folder: Path, objdump: str) -> list[str]:
    """Assemble the table and disassemble it again, one line per instruction."""
    assembler = f"{CROSS.get(name, '')}as"
    for program in (assembler, objdump):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    # A label for operands, after all instructions that are read.
    text = "\n".join([*(text for text, _ in _table(name)), ".Lhere: nop", ""])
    (folder / "table.s").write_text(text)
    source, target = str(folder / "table.s"), str(folder / "table.o")
    argv = [assembler, *EXTENSIONS.get(name, []), "-o", target, source]
    subprocess.run(argv, check=True, capture_output=True, timeout=900)
    flags = OF_LLVM if name == "aarch64" and objdump == "llvm-objdump" else []
    argv = [objdump, "-d", "--no-show-raw-insn", *flags, target]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=900)
    return [line.rstrip() for line in done.stdout.splitlines() if re.match(r"\s*[0-9a-f]+:\s", line)][:-1]


def _goes_on(machine: InstructionSet, text: str) -> tuple[int, Flow, int | None]:
    (item,) = simd_share.read(machine, [f"  10:\t{text}"])
    return item.address, item.flow, item.target


X86, ARM = InstructionSet.X86, InstructionSet.AARCH64
test_where_an_instruction_goes_on = answers(
    _goes_on,
    (X86, "jne    1230 <saxpy+0x10>", (0x10, Flow.BRANCH, 0x1230)),
    (X86, "      \tjne\t0x1230 <saxpy+0x10>", (0x10, Flow.BRANCH, 0x1230)),
    (X86, "jmp    1230 <operator<<(f, 99 <x>)>", (0x10, Flow.JUMP, 0x1230)),
    (X86, "bnd jmp 1230 <x>", (0x10, Flow.JUMP, 0x1230)),
    (X86, "notrack jmp *%rax", (0x10, Flow.LEAVES, None)),
    (X86, "jmp    *0x2fca(%rip)        # 3fd0 <puts@GLIBC_2.2.5>", (0x10, Flow.LEAVES, None)),
    (X86, "loop   1230 <x>", (0x10, Flow.BRANCH, 0x1230)),
    (X86, "call   1230 <x>", (0x10, Flow.NEXT, None)),
    (X86, "repz ret", (0x10, Flow.LEAVES, None)),
    (X86, "ud2", (0x10, Flow.LEAVES, None)),
    (X86, "", (0x10, Flow.NEXT, None)),
    (ARM, "b.ne\t40 <f+0x10>  // b.any", (0x10, Flow.BRANCH, 0x40)),
    (ARM, "cbnz\tx0, 40 <f+0x10>", (0x10, Flow.BRANCH, 0x40)),
    (ARM, "tbz\tw0, #3, 40 <f+0x10>", (0x10, Flow.BRANCH, 0x40)),
    (ARM, "b\t40 <f+0x10>", (0x10, Flow.JUMP, 0x40)),
    (ARM, "bl\t40 <f+0x10>", (0x10, Flow.NEXT, None)),
    (ARM, "br\tx1", (0x10, Flow.LEAVES, None)),
    (ARM, "ret", (0x10, Flow.LEAVES, None)),
    (ARM, "bic\tx0, x1, x2", (0x10, Flow.NEXT, None)),
)


def test_a_symbol_of_a_strange_name_is_no_operand() -> None:
    (item,) = simd_share.read(InstructionSet.X86, ["10:\tmulsd  0xe9b(%rip),%xmm0        # 2010 <f(%zmm1, addps)>"])
    assert item.arithmetic == Arithmetic(packed=False, element="f64", lanes=1, register="xmm")


@given(st.sampled_from(InstructionSet), st.lists(st.text(max_size=60), max_size=5))
def test_any_text_is_read_or_refused(machine: InstructionSet, texts: list[str]) -> None:
    lines = [f"{at:x}:\t{text}" for at, text in enumerate(texts)]
    try:
        count = len(simd_share.read(machine, lines))
    except ToolOutputError as error:
        count = len(lines) if str(error).isprintable() else -1
    assert count == len(lines)


test_what_is_no_disassembly_is_refused = refused_by(
    simd_share.read,
    *(
        (X86, lines, "objdump")
        for lines in (["nonsense"], ["10:\tnop", "10:\tnop"], ["10:\tnop", "f:\tnop"], ["g:\tnop"])
    ),
)


# Each instruction is one byte long. `_` is any instruction; a capital letter jumps to the small one.
def _code(text: str) -> tuple[simd_share.Instruction, ...]:
    lines = []
    for address, letter in enumerate(text):
        target = text.find(letter.lower())
        jumps = {"R": "ret", "J": "jmp *%rax"}
        word = jumps.get(letter) or (f"jne {target:x}" if letter.isupper() else "nop")
        lines.append(f"{address:x}:\t{word}")
    return simd_share.read(InstructionSet.X86, lines)


def _regions(text: str) -> str:
    """Return the start of each instruction's region in hexadecimal, a dot outside of loops."""
    found = simd_share.code_regions(_code(text))
    return "".join(f"{found[at].start:x}" if found[at].is_loop else "." for at in range(len(text)))


test_innermost_loops = answers(
    _regions,
    ("___R", "...."),
    ("_a__A_", ".1111."),
    ("_a_b_B_A_", ".1133311."),
    # Two branches back to the same header form one loop.
    ("_a_A__A_", ".111111."),
    # A loop at the start of the function.
    ("a_A_", "000."),
    # A jump into the middle of a loop: it is no natural loop, so the region is what lies between.
    ("M_a_m_A_", "..22222."),
)


def test_a_block_out_of_line_that_goes_back_into_the_loop_is_of_it() -> None:
    found = simd_share.code_regions(_code("_a_O_A__R_o_bA"))
    assert (found[10].is_loop, found[10].start, found[8].is_loop) == (True, 1, False)


@given(st.lists(st.tuples(st.sampled_from(["nop", "jne", "jmp", "ret", "jmp *"]), st.integers(0, 40)), max_size=40))
def test_every_instruction_is_in_one_region(parts: list[tuple[str, int]]) -> None:
    lines = [
        f"{at:x}:\t{word} {target:x}" if word in {"jne", "jmp"} else f"{at:x}:\t{word}{'%rax' if '*' in word else ''}"
        for at, (word, target) in enumerate(parts)
    ]
    code = simd_share.read(InstructionSet.X86, lines)
    found = simd_share.code_regions(code)
    assert set(found) == set(range(len(parts)))
    regions = {id(region): region for region in found.values()}.values()
    assert all(found[item.address] is region for region in regions for item in region.instructions)
    assert sum(len(region.instructions) for region in regions) == len(code)


# Real programs

SCALAR, VECTOR = ["-O2", "-fno-tree-vectorize"], ["-O3", "-march=native"]
ROUNDS = "300000"
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


@pytest.fixture
def measure(tmp_path: Path) -> Callable[..., Parsed]:
    """Return a function that runs a program under simd-share."""
    if platform.machine() not in {"x86_64", "aarch64"}:
        pytest.skip("x86 and AArch64 alone")
    return lambda *words: parsed_of(run("simd-share", tmp_path / "-".join(words)[-20:].replace("/", "-"), *words))


def test_a_scalar_loop_of_c(measure: Measure, tmp_path: Path) -> None:
    parsed = measure(_compiled(tmp_path, *SCALAR), ROUNDS)
    assert values_of(parsed) == {"simd_share": 0, "vector_width": 1}
    first = parsed.hotspots[0]
    assert (first.location, Path(first.file).name, first.line) == ("saxpy", "saxpy.c", 6)
    assert re.match(r"\d scalar arithmetic instructions? in the loop of \d+\b.*; estimate\Z", first.cause)


@pytest.mark.parametrize(
    "linked", rest_long([["-pie"], ["-no-pie"], ["-static"], ["-static-pie"], ["-s"]], keep=2), ids=str
)
def test_a_vectorized_loop_of_c(linked: list[str], measure: Measure, tmp_path: Path) -> None:
    parsed = measure(_compiled(tmp_path, *VECTOR, *linked), "1000000")
    assert values_of(parsed)["simd_share"] > 0.9
    assert values_of(parsed)["vector_width"] >= 4
    assert "packed" in parsed.hotspots[0].cause
    assert any("without symbols" in text for text in parsed.warnings) == (linked == ["-s"])


def test_names_that_look_like_perf_s_own_text(measure: Measure, tmp_path: Path) -> None:
    name, target = "we ird) (/x+0x3 <%zmm1> [kernel]", str(tmp_path / "pro gram (x) <y>")
    for argv in (
        ["cc", *SCALAR, "-c", "-o", f"{target}.o", str(PROGRAMS / "saxpy.c")],
        ["objcopy", "--redefine-sym", f"saxpy={name}", f"{target}.o"],
        ["cc", "-o", target, f"{target}.o"],
    ):
        subprocess.run(argv, check=True, timeout=900)
    parsed = measure(target, ROUNDS)
    assert parsed.hotspots[0].location == f"{name} (pro gram (x) <y>)"
    assert values_of(parsed)["simd_share"] == 0


@pytest.mark.long  # as loops of C, which other tests of this file compile
def test_a_library_that_is_mapped_while_it_runs(measure: Measure, tmp_path: Path) -> None:
    _compiled(tmp_path, *VECTOR, "-shared", "-fPIC", "-DSHARED")
    parsed = measure(sys.executable, "-c", CALLS, str(tmp_path / "saxpy"))
    assert values_of(parsed)["simd_share"] > 0.9
    assert any("an interpreter, whose" in text for text in parsed.warnings)


@pytest.mark.long  # as loops of C, which other tests of this file compile
@pytest.mark.parametrize(
    # A sum of floats in program order cannot be vectorized.
    ("loop", "rounds", "low", "high"),
    [("dot", "100000", 0, 0.1), ("add", "500000", 0.9, 1)],
)
def test_loops_of_rust(
    loop: str, rounds: str, low: float, high: float, measure: Measure, built: Mapping[str, str]
) -> None:
    assert low <= values_of(measure(built["loops"], loop, rounds))["simd_share"] <= high


@pytest.mark.skipif(not shutil.which("mojo"), reason="mojo is not installed")
def test_loops_of_mojo(measure: Measure, tmp_path: Path) -> None:
    program = str(tmp_path / "saxpy")
    argv = ["mojo", "build", "-O3", "-o", program, str(PROGRAMS / "saxpy.mojo")]
    subprocess.run(argv, check=True, timeout=900, capture_output=True)
    assert values_of(measure(program, "200000", "scalar"))["simd_share"] < 0.1
    assert values_of(measure(program, "2000000"))["simd_share"] > 0.9


def test_integers_have_no_share(measure: Measure, tmp_path: Path) -> None:
    parsed = measure(_compiled(tmp_path, *SCALAR), "200000", "integers")
    assert not parsed.readings
    assert parsed.hotspots[0].cause.startswith("no floating-point or vector arithmetic in the loop")
    assert any(text.startswith("simd_share is undefined") for text in parsed.warnings)


@pytest.mark.long  # as loops of C, which other tests of this file compile
def test_python_is_the_interpreter_s_code(measure: Measure) -> None:
    code = "s = 0.0\nfor i in range(3000000): s += i * 0.5"
    parsed = measure(sys.executable, "-c", code)
    assert not parsed.readings
    assert any("an interpreter, whose" in text for text in parsed.warnings)


def test_without_objdump_it_says_what_helps(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("perf", "true"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
    words, env = (sys.executable, "-c", "sum(range(9**7))"), {"PATH": str(tmp_path / "bin")}
    ran = run("simd-share", tmp_path / "out", *words, env=env)
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
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    scalar, vector = _compiled(tmp_path / "a", *SCALAR), _compiled(tmp_path / "b", *VECTOR)
    step = {"id": "saxpy", "uses": "simd-share", "with": {"command": [scalar, ROUNDS]}}
    step |= {"candidate": {"with": {"command": [vector, "1000000"]}}}
    done = run_flow(tmp_path, {"profile": [step]}, {"saxpy": {"simd_share": "≥90%"}}, measured=True)
    assert result_in(tmp_path)["targets"][0]["status"] in {"met", "unproven"}, done.stdout
    section = (tmp_path / "out" / "report.md").read_text().partition("### Profiling Results")[2].partition("\n### ")[0]
    assert re.search(r"`simd_share` \| 0% → (?:9\d(?:\.\d+)?|100)%", section)
    assert "`vector_width`" in section
