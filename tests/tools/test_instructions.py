"""Packed, scalar and other instructions, in text of real assemblers and disassemblers.

``instructions/*.txt`` are the tables, ``*.objdump`` their disassembly by GNU objdump 2.40. Update it with
``PERFFLOW_CAPTURE=1 pytest tests/tools/test_instructions.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.tools.linux import simd_share
from perfflow.tools.linux.simd_share import Arithmetic, Flow, InstructionSet

TABLES = Path(__file__).parent / "instructions"
MACHINES = {"x86-64": InstructionSet.X86, "aarch64": InstructionSet.AARCH64}
EXTENSIONS = {"aarch64": ["-march=armv9-a+bf16+fp16+dotprod+sve2+i8mm+fp16fml"]}
CROSS = {"aarch64": "aarch64-linux-gnu-"}
UNKNOWN = re.compile(r"<unknown>")

each = pytest.mark.parametrize("name", MACHINES)


def _table(name: str) -> list[tuple[str, Arithmetic | None]]:
    lines = (TABLES / f"{name}.txt").read_text().splitlines()
    rows = [line.rpartition("|") for line in lines if line and not line.startswith("#")]
    return [(text.strip(), _wanted(told.split())) for text, _, told in rows]


def _wanted(words: list[str]) -> Arithmetic | None:
    if not words:
        return None
    kind, element, lanes, register = words
    return Arithmetic(kind == "packed", element.strip("-"), int(lanes), register)


def _check(name: str, listing: list[str]) -> int:
    # A disassembler may show an unknown instruction as several.
    rows = dict(zip(map(_address, _captured(name)), _table(name), strict=True))
    known = [(rows[_address(line)], line) for line in listing if _address(line) in rows and not UNKNOWN.search(line)]
    got = simd_share.read(MACHINES[name], [line for _, line in known])
    wrong = [
        (text, line, item.arithmetic)
        for ((text, wanted), line), item in zip(known, got, strict=True)
        if item.arithmetic != wanted
    ]
    assert not wrong
    return len(known)


def _captured(name: str) -> list[str]:
    return (TABLES / f"{name}.objdump").read_text().splitlines()


def _address(line: str) -> int:
    return int(line.partition(":")[0], 16)


@each
def test_captured_disassembly(name: str) -> None:
    assert _check(name, _captured(name)) > 100


@each
def test_real_assembler_and_objdump(name: str, tmp_path: Path) -> None:
    listing = _disassembled(name, tmp_path, f"{CROSS.get(name, '')}objdump")
    if os.environ.get("PERFFLOW_CAPTURE"):
        (TABLES / f"{name}.objdump").write_text("".join(f"{line}\n" for line in listing))
    assert _check(name, listing) > 100


@each
def test_real_llvm_objdump(name: str, tmp_path: Path) -> None:
    assert _check(name, _disassembled(name, tmp_path, "llvm-objdump")) > 100


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
    flags = (
        ["--mattr=+v9a,+sve2,+fullfp16,+bf16,+dotprod,+i8mm,+fp16fml"]
        if name == "aarch64" and objdump == "llvm-objdump"
        else []
    )
    argv = [objdump, "-d", "--no-show-raw-insn", *flags, target]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=900)
    return [line.rstrip() for line in done.stdout.splitlines() if re.match(r"\s*[0-9a-f]+:\s", line)][:-1]


@pytest.mark.parametrize(
    ("machine", "line", "flow", "target"),
    [
        (InstructionSet.X86, "  10:\tjne    1230 <saxpy+0x10>", Flow.BRANCH, 0x1230),
        (InstructionSet.X86, "  10:      \tjne\t0x1230 <saxpy+0x10>", Flow.BRANCH, 0x1230),
        (InstructionSet.X86, "  10:\tjmp    1230 <operator<<(f, 99 <x>)>", Flow.JUMP, 0x1230),
        (InstructionSet.X86, "  10:\tbnd jmp 1230 <x>", Flow.JUMP, 0x1230),
        (InstructionSet.X86, "  10:\tnotrack jmp *%rax", Flow.LEAVES, None),
        (InstructionSet.X86, "  10:\tjmp    *0x2fca(%rip)        # 3fd0 <puts@GLIBC_2.2.5>", Flow.LEAVES, None),
        (InstructionSet.X86, "  10:\tloop   1230 <x>", Flow.BRANCH, 0x1230),
        (InstructionSet.X86, "  10:\tcall   1230 <x>", Flow.NEXT, None),
        (InstructionSet.X86, "  10:\trepz ret", Flow.LEAVES, None),
        (InstructionSet.X86, "  10:\tud2", Flow.LEAVES, None),
        (InstructionSet.X86, "  10:\t", Flow.NEXT, None),
        (InstructionSet.AARCH64, "  10:\tb.ne\t40 <f+0x10>  // b.any", Flow.BRANCH, 0x40),
        (InstructionSet.AARCH64, "  10:\tcbnz\tx0, 40 <f+0x10>", Flow.BRANCH, 0x40),
        (InstructionSet.AARCH64, "  10:\ttbz\tw0, #3, 40 <f+0x10>", Flow.BRANCH, 0x40),
        (InstructionSet.AARCH64, "  10:\tb\t40 <f+0x10>", Flow.JUMP, 0x40),
        (InstructionSet.AARCH64, "  10:\tbl\t40 <f+0x10>", Flow.NEXT, None),
        (InstructionSet.AARCH64, "  10:\tbr\tx1", Flow.LEAVES, None),
        (InstructionSet.AARCH64, "  10:\tret", Flow.LEAVES, None),
        (InstructionSet.AARCH64, "  10:\tbic\tx0, x1, x2", Flow.NEXT, None),
    ],
)
def test_where_an_instruction_goes_on(machine: InstructionSet, line: str, flow: Flow, target: int | None) -> None:
    (item,) = simd_share.read(machine, [line])
    assert (item.address, item.flow, item.target) == (0x10, flow, target)


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


@pytest.mark.parametrize("lines", [["nonsense"], ["10:\tnop", "10:\tnop"], ["10:\tnop", "f:\tnop"], ["g:\tnop"]])
def test_what_is_no_disassembly_is_refused(lines: list[str]) -> None:
    with pytest.raises(ToolOutputError):
        simd_share.read(InstructionSet.X86, lines)


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("___R", "...."),
        ("_a__A_", ".1111."),
        ("_a_b_B_A_", ".1133311."),
        # Two branches back to the same header form one loop.
        ("_a_A__A_", ".111111."),
        # Out of line: the last block is reached from the loop and goes back into it.
        ("_a_O_A__R_o_bA", None),
        # A loop at the start of the function.
        ("a_A_", "000."),
        # A jump into the middle of a loop: it is no natural loop, so the region is what lies between.
        ("M_a_m_A_", "..22222."),
    ],
)
def test_innermost_loops(text: str, wanted: str | None) -> None:
    if wanted is None:
        found = simd_share.code_regions(_code(text))
        assert found[10].is_loop
        assert found[10].start == 1
        assert not found[8].is_loop
    else:
        assert _regions(text) == wanted


@given(st.lists(st.tuples(st.sampled_from(["nop", "jne", "jmp", "ret", "jmp *"]), st.integers(0, 40)), max_size=40))
def test_every_instruction_is_in_one_region(parts: list[tuple[str, int]]) -> None:
    lines = [
        f"{at:x}:\t{word} {target:x}" if word in {"jne", "jmp"} else f"{at:x}:\t{word}{'%rax' if '*' in word else ''}"
        for at, (word, target) in enumerate(parts)
    ]
    code = simd_share.read(InstructionSet.X86, lines)
    found = simd_share.code_regions(code)
    assert set(found) == set(range(len(parts)))
    for region in {id(region): region for region in found.values()}.values():
        assert all(found[item.address] is region for item in region.instructions)
    assert sum(len(region.instructions) for region in {id(item): item for item in found.values()}.values()) == len(code)
