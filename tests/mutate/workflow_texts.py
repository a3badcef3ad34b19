"""Workflows with something done to them: to their keys and values, to their bytes, and to the files they build on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml

from perfflow.library import search_path
from perfflow.testing.mutations import damage

ROOT = Path(__file__).parents[2]
MARKER = "zz-marker"
"""A key that nothing knows; where it is not refused it has to be in what was loaded."""
_VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        10**30,
        1e300,
        float("nan"),
        float("inf"),
        "",
        "x",
        "≥1x",
        "<1s",
        "10 parsec",
        "**",
        "[",
        "\t",
    ),
    *("a" * 3000, "\u202e", "\U0001f600", "${{ 1/0 }}", "${{ params", "${{ 'a' * 10 ** 9 }}", "lib:x", "../x.yaml"),
    *([], {}, [[]], [{}], [None], {"": ""}, {"a": {"b": {"c": 1}}}, ["x"] * 50),
]
_ODD = ["\0", "\x1b", "\x85", "\u2028", "\ufeff", "\ufffe", "\ud7ff", "\x7f", "\u200b", "\U0010ffff", "é", "\u0301"]
_KEY = re.compile(r"^(\s*(?:- )?)([A-Za-z_-]+)(:.*)$", re.MULTILINE)


def sources() -> list[Path]:
    """Every workflow of the project: of the tests, of the clone, and those that ship with it."""
    tests, own = (ROOT / "tests" / "workflows").glob("*/*.yaml"), (ROOT / "workflows").glob("*.yaml")
    return sorted([*tests, *own, *Path(search_path.SHIPPED).glob("*.yaml")])


def _data(text: str, random: Random, change: Callable[[Any, Any, Random], None]) -> str:
    """Change one node of the data, and write it again."""
    try:
        root = {"": yaml.safe_load(text)}
    except (yaml.YAMLError, ValueError):  # also a date that is none, which perfflow reads as text
        return text
    parent: Any = root
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and random.random() < 0.85:
        parent = parent[key]
        key = random.choice(list(parent)) if isinstance(parent, dict) else random.randrange(len(parent))
    change(parent, key, random)
    return yaml.safe_dump(root.get("", root), allow_unicode=random.random() < 0.5, sort_keys=random.random() < 0.5)


def drop(text: str, random: Random) -> str:
    """A key or an item is gone."""
    return _data(text, random, lambda parent, key, _: parent.pop(key))


def retype(text: str, random: Random) -> str:
    """A value is of another type, or nonsense."""

    def change(parent: Any, key: Any, random: Random) -> None:
        parent[key] = random.choice(_VALUES)

    return _data(text, random, change)


def rename(text: str, random: Random) -> str:
    """A key has a name that nothing knows."""
    found = list(_KEY.finditer(text))
    match = random.choice(found) if found else None
    return f"{text[: match.start(2)]}{MARKER}{text[match.end(2) :]}" if match else text


def double(text: str, random: Random) -> str:
    """A line with a key is there twice."""
    found = list(_KEY.finditer(text))
    match = random.choice(found) if found else None
    return f"{text[: match.end()]}\n{match[0]}{text[match.end() :]}" if match else text


def nest(text: str, random: Random) -> str:
    """A value, or the whole, is nested very deeply."""
    depth = random.choice([39, 41, 200, 50_000])
    bracket = random.choice(["[]", "{}"])
    deep = "[" * depth + "]" * depth if bracket == "[]" else "{a: " * depth + "1" + "}" * depth
    return _at_line(text, random, f"{random.choice(['name', 'params', 'stages', MARKER])}: {deep}")


def bomb(text: str, random: Random) -> str:
    """Aliases that stand for a billion values, for themselves, or for nothing."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, random.choice([3, 9, 15]))]
    odd = random.choice(
        ["\n".join(lines), "params: &p {x: *p}", "params: *nowhere", "params: &x &y 1", "<<: *a0", "& *"]
    )
    return _at_line(text, random, odd)


def odd_letters(text: str, random: Random) -> str:
    """A letter that YAML, terminals or file names do not take well."""
    at = random.randint(0, len(text))
    return text[:at] + random.choice(_ODD) * random.choice([1, 1, 200]) + text[at:]


def tabs(text: str, random: Random) -> str:
    """Indentation by tabs: everywhere, or in one line."""
    lines = text.split("\n")
    chosen = range(len(lines)) if random.random() < 0.3 else [random.randrange(len(lines))]
    for number in chosen:
        lines[number] = re.sub(r"^ +", lambda found: "\t" * (len(found[0]) // 2), lines[number]) or "\t"
    return "\n".join(lines)


def merge(text: str, random: Random) -> str:
    """Two workflows in one: one below the other, as two documents, or line by line."""
    other = random.choice(sources()).read_text(encoding="utf-8", errors="replace")
    way = random.randrange(3)
    if way < 2:
        return text + "\n---\n" * way + other
    one, two = text.split("\n"), other.split("\n")
    cut = random.randrange(len(one)), random.randrange(len(two))
    return "\n".join([*one[: cut[0]], *two[cut[1] :]])


def _at_line(text: str, random: Random, line: str) -> str:
    lines = text.split("\n")
    at = random.choice([0, len(lines), random.randint(0, len(lines))])
    return "\n".join([*lines[:at], line, *lines[at:]])


def bytes_of(text: str, random: Random) -> bytes:
    """Accidents of the file's bytes."""
    return damage(text.encode(), random)


MUTATIONS: Mapping[str, Callable[[str, Random], str | bytes]] = {
    "drop": drop,
    "retype": retype,
    "rename": rename,
    "double": double,
    "nest": nest,
    "bomb": bomb,
    "odd letters": odd_letters,
    "tabs": tabs,
    "merge": merge,
    "bytes": bytes_of,
}
NEUTRAL: Mapping[str, Callable[[str], bytes]] = {
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "bom": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "comments": lambda text: f"# one\n{text}\n# two\n\n".encode(),
}
"""What leaves a workflow what it is."""


def extend(text: str, folder: Path, random: Random) -> str:
    """Build on another file: itself, a ring, one that is missing, broken or a folder, a long chain, a tool file."""
    (folder / "folder.yaml").mkdir(exist_ok=True)
    (folder / "parent.yaml").write_bytes(bytes_of(random.choice(sources()).read_text(encoding="utf-8"), random))
    (folder / "ring.yaml").write_text("perfflow: 1\nextends: ./mutated.yaml\n")
    length = random.choice([3, 30, 300])
    for number in range(length):
        last = number == length - 1
        follow = "stages: {}\n" if last else f"extends: ./chain{number + 1}.yaml\n"
        (folder / f"chain{number}.yaml").write_text(f"perfflow: 1\n{follow}")
    names = ["./mutated.yaml", "./ring.yaml", "./missing.yaml", "./parent.yaml", "./folder.yaml", "./chain0.yaml"]
    names += ["./tool.yaml", "lib:two-commands", "lib:nothing", "/dev/zero", "''", "[a]", '"\\0"']
    kept = "\n".join(line for line in text.split("\n") if not line.startswith("extends:"))
    return f"extends: {random.choice(names)}\n{kept}"


TOOL = """perfflow-tool: 1
description: How long dd takes.
program: dd
version: [--version]
with:
  block: {default: 64K, help: bytes at a time}
argv: [dd, if=/dev/zero, of=/dev/null, "bs=${{ with.block }}", count=1]
env: {LC_ALL: C}
parse:
  file: stderr
  regex: '^(?P<copied>\\d+) bytes .* copied, (?P<time>[\\d.e-]+) s'
  units: {copied: B, time: s}
  better: {copied: none}
finished: ' s, '
"""
USES_TOOL = """perfflow: 1
stages:
  baseline:
    - {id: copy, uses: ./tool.yaml, with: {block: "512"}}
"""
