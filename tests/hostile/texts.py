"""Workflow files that ask for too much, or hold what no workflow holds. Each is at most 1 MiB."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.hostile.place import BENCH

MIB = 2**20
HEAD = "perfflow: 1\n"
LONG = BENCH.replace("bench", "a" * 90)
SHELL = HEAD + "stages:\n  baseline:\n  - id: a\n    run: |\n"


def filled(piece: str, before: str = "", behind: str = "", size: int = MIB) -> str:
    """Pieces up to just under 1 MiB."""
    room = size - len(before.encode()) - len(behind.encode())
    return before + piece * (room // len(piece.encode())) + behind


def numbered(line: str, before: str = "", size: int = MIB) -> str:
    """Lines in which ``{n}`` is a number, up to just under 1 MiB."""
    lines, room, number = [], size - len(before), 0
    while room > len(line) + 10:
        lines.append(line.replace("{n}", str(number)))
        room -= len(lines[-1]) + 1
        number += 1
    return before + "\n".join(lines) + "\n"


def expression(source: str) -> str:
    """A workflow with an expression in a command, in shell text and in a condition."""
    quoted = source.replace("\\", "\\\\").replace('"', '\\"')
    return (
        HEAD + "params: {size: 10, words: [a, b]}\nstages:\n  baseline:\n"
        f'    - {{id: one, uses: command, with: {{command: "x ${{{{ {quoted} }}}}"}}}}\n'
        f'    - {{id: two, run: "x ${{{{ {quoted} }}}}", if: "({quoted}) == 1"}}\n'
    )


def bombs(width: int, depth: int) -> str:
    """Aliases of aliases."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return HEAD + "\n".join(lines) + "\n"


def targets(globs: list[str], stages: str = LONG) -> str:
    return HEAD + "targets:\n" + "".join(f'  "{glob}": {{time: <1s}}\n' for glob in globs) + stages


def parsed(pattern: str) -> str:
    step = f"{{id: bench, run: 'echo 1', parse: {{regex: '{pattern}', units: {{x: '1'}}}}}}"
    return HEAD + f"stages: {{baseline: [{step}]}}\n"


def matrix(axes: int, values: int, count: int = 1) -> str:
    axis = ", ".join(f"k{n}: [{', '.join(map(str, range(values)))}]" for n in range(axes))
    return steps(f"id: s{n}, run: 'true', needs: [], matrix: {{{axis}}}" for n in range(count))


def steps(keys: Iterable[str], head: str = "") -> str:
    return f"{HEAD}{head}stages:\n  baseline:\n" + "".join(f"    - {{{each}}}\n" for each in keys)


NEEDING = [f"id: s{n}, run: 'true', needs: [{', '.join(f's{m}' for m in range(n))}]" for n in range(500)]
MUCH_ENV = "params: {p: x}\nenv:\n" + "".join(f'  V{n}: "${{{{ params.p }}}}"\n' for n in range(5000))
LARGE = "params: {p: " + "x" * 500_000 + "}\n"
INCLUDES = ", ".join(f"{{k: {n}, x: {n}}}" for n in range(9000))
HERE_DOCUMENTS = "      cat " + "<<a" * 50_000 + "\n" + "      a\n" * 50_000
OPEN_QUOTES = '${{ "' + '\\"' * 1900 + " }}"
TEXTS: Mapping[str, Callable[[], str | bytes]] = {
    # -- bytes
    "empty": lambda: "",
    "a NUL": lambda: HEAD + BENCH + "\0",
    "only NULs": lambda: b"\0" * MIB,
    "a byte order mark": lambda: b"\xef\xbb\xbf" + (HEAD + BENCH).encode(),
    "UTF-16": lambda: (HEAD + BENCH).encode("utf-16"),
    "invalid UTF-8": lambda: (HEAD + BENCH).encode() + b"description: \xff\xfe\xfa\n",
    "invalid UTF-8 far down a long line": lambda: HEAD.encode() + b"x" * (MIB - 100) + b"\xff",
    "carriage returns alone": lambda: (HEAD + BENCH).replace("\n", "\r"),
    "letters that turn the line around": lambda: HEAD + 'name: "a\\u202eb\\u2066c"\nn\u202eme: x\n' + BENCH,
    "commands for a terminal": lambda: HEAD + 'name: "\\e]0;owned\\a\\e[2J"\n"\\e[31m": 1\n' + BENCH,
    "more than 1 MiB": lambda: "#" * (MIB + 1),
    # -- lines and values
    "one line of 1 MiB": lambda: filled("x", HEAD + "name: ") + "\n",
    "one line of colons": lambda: filled(": >1 ", HEAD + "name: "),
    "one line of open brackets and quotes": lambda: filled("[{'", HEAD + "name: "),
    "a comment of 1 MiB": lambda: filled("#", HEAD + BENCH),
    "1 MiB of commas": lambda: filled("a,", HEAD + "name: [", "]"),
    "1 MiB of list items": lambda: filled("- a\n", HEAD + "name:\n"),
    "1 MiB of empty lists": lambda: filled("[],", HEAD + "name: [", "]"),
    "1 MiB of unknown keys": lambda: numbered("k{n}: 1", HEAD),
    "1 MiB of keys that are nearly known": lambda: numbered("stage{n}: 1", HEAD),
    "1 MiB of one key": lambda: filled("a: 1\n", HEAD),
    "1 MiB of documents": lambda: filled("---\n", HEAD),
    "1 MiB of anchors": lambda: numbered("k{n}: &a{n} 1", HEAD),
    "1 MiB of tabs": lambda: filled("\t", HEAD + "stages:\n"),
    "a block text of 1 MiB": lambda: filled("  ${{ x\n", HEAD + "nam: |\n"),
    "lists in lists": lambda: filled("[", HEAD + "name: "),
    "maps in maps": lambda: filled("{a: ", HEAD + "name: "),
    "indented maps in maps": lambda: HEAD + "".join(f"{' ' * n}a:\n" for n in range(1400)),
    "keys that are maps": lambda: filled("? {a: 1}\n: 1\n", HEAD),
    "a tag that would run a program": lambda: HEAD + BENCH + "name: !!python/object/apply:os.system ['./trip']\n",
    # -- aliases
    "a billion by aliases": lambda: bombs(10, 12),
    "a wide alias many times": lambda: HEAD + "a: &a [" + "x," * 40000 + "]\nb: [" + "*a," * 40000 + "]\n",
    "an alias that holds itself": lambda: HEAD + "params: &p {x: *p}\n" + BENCH,
    "merge keys": lambda: HEAD + "a: &a {<<: {x: 1}}\nb: {<<: [*a, *a]}\n" + BENCH,
    # -- numbers
    "a number of 1 MiB": lambda: filled("9", HEAD + "params: {n: ", "}\n" + BENCH),
    "a hexadecimal number of 1 MiB": lambda: filled("f", HEAD + "params: {n: 0x", "}\n" + BENCH),
    "a number beyond all": lambda: HEAD + "params: {n: 1e999999999, m: -.inf, k: .nan}\n" + BENCH,
    "a duration beyond all": lambda: HEAD + f"defaults: {{timeout: {'9' * 4000}s}}\n" + BENCH,
    # -- steps
    "1 MiB of steps": lambda: filled("  - run: a\n", HEAD + "stages:\n baseline:\n"),
    "as many steps as are planned": lambda: HEAD + "stages:\n baseline:\n" + "  - run: a\n" * 5000,
    "more steps than are planned": lambda: HEAD + "stages:\n baseline:\n" + "  - run: a\n" * 6000,
    "1 MiB of stages": lambda: numbered("  s{n}: [{run: a}]", HEAD + "stages:\n"),
    "1 MiB of stages that are nearly known": lambda: numbered("  verif{n}: [{run: a}]", HEAD + "stages:\n"),
    "1 MiB of unknown tools": lambda: numbered("    - {id: s{n}, uses: perv{n}}", HEAD + "stages:\n  baseline:\n"),
    "every step needs all before it": lambda: steps(NEEDING),
    "needs that are nearly there": lambda: numbered(
        "    - {id: s{n}, run: 'true', needs: [t{n}, u{n}, v{n}]}", HEAD + "stages:\n  baseline:\n", 60_000
    ),
    "a matrix of nine axes": lambda: matrix(9, 60),
    "a matrix of many values": lambda: matrix(1, 40_000),
    "many matrices": lambda: matrix(2, 16, 60),
    "a matrix with many includes": lambda: steps([f"id: a, run: 'true', matrix: {{k: [1, 2], include: [{INCLUDES}]}}"]),
    "much environment for many steps": lambda: steps((f"id: s{n}, run: 'true'" for n in range(900)), MUCH_ENV),
    "large values in many steps": lambda: steps(
        (f'id: s{n}, run: "${{{{ params.p }}}} ${{{{ params.p }}}}"' for n in range(900)), LARGE
    ),
    # -- globs
    "a glob with eight stars": lambda: targets(["*a*a*a*a*a*a*a*b", "**a**a**a**a**a**a**b", "?*?*?*?*?*?*?*b"]),
    "a glob of 1 MiB": lambda: targets(["*a" * 500_000]),
    "a target of 1 MiB": lambda: targets(["a" * 1_000_000]),
    "many globs of many stars": lambda: targets([f"{'*a' * 100}{n}" for n in range(4000)]),
    "many benchmarks and many globs": lambda: targets(
        [f"*{n}*x" for n in range(9000)],
        steps(f"id: a{n}, uses: command, with: {{command: 'true'}}" for n in range(900)).removeprefix(HEAD),
    ),
    "thresholds of many globs": lambda: numbered(
        '    "*a*{n}*": {action: 5%}', HEAD + BENCH + "thresholds:\n  for:\n", 500_000
    ),
    # -- expressions
    "rounding to a billion digits": lambda: expression("5|round(-1000000000)"),
    "a list of a list as text": lambda: expression("(['a'*100000]*100000)|string"),
    "lists of lists of lists": lambda: expression("([[[['a']*99]*99]*99]*99)|tojson"),
    "a power of a power": lambda: expression("9**9**9**9"),
    "powers one after another": lambda: expression("(((9**999)**99)**99)"),
    "a text of a billion letters": lambda: expression("'a'*1000000000"),
    "replacing a letter by many": lambda: expression("('a'*999)|replace('a','a'*999)|replace('a','a'*999)"),
    "joining what was joined": lambda: expression("(['a'*99999]*99)|join('a'*99999)"),
    "a text that is formatted": lambda: expression("'%999999999d' % 1"),
    "a text in a wide format": lambda: expression("'{:>999999999}'.format(1)"),
    "a text in the middle": lambda: expression("'a'|center(999999999)"),
    "a range": lambda: expression("range(999999999)|list"),
    "the inside of objects": lambda: expression("''.__class__.__mro__[1].__subclasses__()"),
    "sorting what is long": lambda: expression("((['b','a']*40000)|sort|reverse|list)*40000"),
    "much work in one expression": lambda: expression("+".join(["('ab'*30000)|upper|length"] * 110)),
    "parentheses": lambda: expression("(" * 1900 + "1" + ")" * 1900),
    "quotes that do not end": lambda: (
        HEAD + 'stages: {baseline: [{id: a, run: "${{ \\"' + '\\\\\\"' * 200_000 + '"}]}\n'
    ),
    "many quotes that do not end": lambda: steps(f"id: b{n}, run: '{OPEN_QUOTES}'" for n in range(250)),
    "many expressions in a text": lambda: filled("${{ 1 }}", HEAD + 'stages: {baseline: [{id: a, run: "', '"}]}\n'),
    "many texts with expressions": lambda: numbered(
        '      - "${{ params.x + {n} }}"', HEAD + "params: {x: 1}\nstages:\n  baseline:\n  - id: a\n    argv:\n"
    ),
    # -- shell texts
    "many here-documents": lambda: f"{SHELL}{HERE_DOCUMENTS}      echo ${{{{ 1 }}}}\n",
    "a long here-document": lambda: filled("      a\n", SHELL + "      cat <<E\n", "      E\n      echo ${{ 1 }}\n"),
    "substitutions in substitutions": lambda: filled("${a:-'", SHELL + "      echo ", "\n      echo ${{ 1 }}\n"),
    "parentheses of a shell": lambda: filled("$((", SHELL + "      echo ", "\n      echo ${{ 1 }}\n"),
    # -- patterns
    "a pattern that tries every way": lambda: parsed("(?P<x>(a+)+)$"),
    "a pattern of repetitions": lambda: parsed("(?P<x>((a{1,65535}){1,65535}){1,65535})"),
    "a pattern of 1 MiB": lambda: parsed("(?P<x>" + "a|" * 480_000 + "b)"),
    "a pattern of open groups": lambda: parsed("(" * 900_000),
    "a pattern of named groups": lambda: parsed("".join(f"(?P<x{n}>a)" for n in range(60_000))),
}
