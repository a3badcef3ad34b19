"""Second opinions on what any program prints: a step's ``parse``, and a tool file's stacks (see plain_readers)."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter

from perfflow.tools.tool_files import clean_name
from tests.mutate.plain_readers import Figures, Files, json_of, only_file


def printed_json(files: Files) -> Figures:
    """``results[].name`` with ``results[].mean`` in ms and ``results[].size`` in KB."""
    found: Figures = {}
    for result in json_of(files)["results"]:
        found.setdefault((str(result["name"]), "time"), []).append(result["mean"] * 1e-3)
        found.setdefault((str(result["name"]), "alloc"), []).append(result["size"] * 1e3)
    return found


def printed_lines(files: Files) -> Figures:
    """``NAME took 12.5 ms, 3 calls`` on each line."""
    found: Figures = {}
    for line in only_file(files, "stdout").decode("utf-8", "replace").split("\n"):
        if match := re.match(r"(\S+) took (\S+) ms, (\S+) calls", line):
            found.setdefault((match[1], "time"), []).append(float(match[2].replace(",", "")) * 1e-3)
            found.setdefault((match[1], "calls"), []).append(float(match[3].replace(",", "")))
    return found


def printed_csv(files: Files) -> Figures:
    """Columns ``name`` and ``seconds`` below the first line that has both."""
    text = only_file(files, "stdout").decode("utf-8", "replace")
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text))]
    start = next(at for at, row in enumerate(rows) if {"name", "seconds"} <= {*row})
    name, seconds = rows[start].index("name"), rows[start].index("seconds")
    found: Figures = {}
    for row in rows[start + 1 :]:
        # Lines without a comma are prose, rows of empty cells none.
        if len(row) > 1 and any(row):
            found.setdefault((row[name], "time"), []).append(float(row[seconds].replace(",", "")))
    return found


def folded(files: Files) -> Figures:
    """The last number of each line; the share of the leaf with the most."""
    leaves: Counter[str] = Counter()
    for line in only_file(files, ".folded").decode("utf-8", "replace").splitlines():
        stack, _, count = line.rstrip().rpartition(" ")
        if line.strip():
            leaves[clean_name(stack.split(";")[-1])] += int(count)
    return {("", "top share"): [max(leaves.values()) / leaves.total()]}
