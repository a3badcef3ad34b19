"""Count the tests that passed, from what a test runner printed.

Known are pytest, unittest, cargo test, ``go test -v`` and ``-json``, jest, vitest, mocha, node:test, ctest, JUnit 4,
Maven Surefire, and TAP. A command may run several of them, whose numbers are added.
"""

from __future__ import annotations

import re

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_ADDED = {
    "pytest": rb"^(?:=+ )?(?:\d+ \w+, )*?(\d+) passed(?:, \d+ \w+)* in [\d.]+s",
    "cargo test": rb"^test result: \w+\. (\d+) passed;",
    "jest": rb"^Tests: .*?(\d+) passed, .*total$",
    "vitest": rb"^ +Tests  (?:\d+ failed \| )?(\d+) passed",
    "mocha": rb"^ +(\d+) passing \(",
    "junit": rb"^OK \((\d+) tests?\)$",
}
"""Lines with the number of passed tests."""
_COUNTED = {
    "go test -v": rb"^ *--- PASS: ",
    "go test -json": rb'^\{(?=.*"Action":"pass")(?=.*"Test":)',
}
"""Lines of single tests that passed."""
_LESS = {
    "unittest": rb"^Ran (\d+) tests? in [\d.]+s\n\n(?:OK|FAILED)((?: \(.*\))?)$",
    "ctest": rb"^\d+% tests passed, \d+ tests failed out of (\d+)$",
    "surefire": rb"^(?:\[\w+\] )?Tests run: (\d+)(?!.*Time elapsed)((?:, \w+: \d+)+)$",
}
_NOT_PASSED = {
    "unittest": re.compile(rb"=(\d+)"),
    "ctest": re.compile(rb"passed, (\d+) tests failed"),
    "surefire": re.compile(rb", \w+: (\d+)"),
}
"""Where the same lines have numbers of tests that did not pass, which all tests include."""
_OF_NODE = re.compile(rb"^(?:#|\xe2\x84\xb9) pass (\d+)$", re.MULTILINE)
_PLAN, _TAP = (re.compile(text, re.MULTILINE) for text in (rb"^1\.\.\d+", rb"^ok \d+\b(?!.*# (?i:skip|todo))"))


def passed_tests(output: bytes) -> int | None:
    """Return how many tests passed; None if nothing in the output of a test runner tells it."""
    text = _COLOUR.sub(b"", output.replace(b"\r\n", b"\n"))
    found = [int(match[1]) for regex in _ADDED.values() for match in re.finditer(regex, text, re.MULTILINE)]
    found += [1 for regex in _COUNTED.values() for _ in re.finditer(regex, text, re.MULTILINE)]
    for name, regex in _LESS.items():
        for match in re.finditer(regex, text, re.MULTILINE):
            found.append(int(match[1]) - sum(map(int, _NOT_PASSED[name].findall(match[0]))))
    # The TAP of node:test ends with numbers that count the inner tests as well.
    of_node = [int(match[1]) for match in _OF_NODE.finditer(text)]
    found += of_node or ([len(_TAP.findall(text))] if _PLAN.search(text) else [])
    return sum(found) if found else None
