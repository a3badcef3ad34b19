"""Gates of real changes of public projects, forwards and backwards: ``python -m benchmarks.replay --help``.

Prints one line of JSON for each gate: which of the known changes it found, which other rows it called changed, how many
it left undecided, and its minutes. ``replay.yaml`` has the changes; ``--last`` gates the last commits of its projects,
and ``--alike`` a commit against itself. ``--busy 1`` keeps one core busy meanwhile.
Needs clones of the projects, and their tools. ``replayed.py`` makes tables of the lines.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_suffix(".yaml")
NAME = ("-c", "user.name=replay", "-c", "user.email=replay@localhost")


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; return what it prints."""
    return subprocess.run(["git", *NAME, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def prepared(change: dict[str, Any], clone: Path, tree: Path, *, backwards: bool) -> tuple[str, list[str]]:
    """Check out head in ``tree``, a worktree of ``clone``; return the base and the options for the gate.

    Backwards, head is a commit with the files of the base after the real head, so that their merge base is the latter.
    """
    newest = git(clone, "rev-parse", "HEAD")
    old, new = (git(clone, "rev-parse", f"{change[side]}^{{commit}}") for side in ("base", "head"))
    if not (tree / ".git").exists():
        git(clone, "worktree", "add", "-f", "--detach", str(tree), new)
    git(tree, "checkout", "-qf", "--detach", new)
    # The folders of builds stay: perfflow keeps its own.
    git(tree, "clean", "-fdq", "-e", ".perfflow")
    if backwards:
        git(tree, "rm", "-rqf", ".")
        git(tree, "checkout", old, "--", ".")
    own = [*change.get("take", []), *change.get("files", {})]
    if change.get("take"):
        git(tree, "checkout", newest, "--", *change["take"])
    for name, text in {**change.get("files", {}), **change.get("added", {})}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    git(tree, "add", "-Af")
    git(tree, "commit", "-qm", "replayed", "--allow-empty", "--no-verify")
    return (new if backwards else old), [f"--overlay={path}" for path in own]


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep so many cores busy with loops."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def clone_of(change: dict[str, Any], clones: Path) -> Path:
    """Return the folder of a project's clone."""
    return clones / str(change["repository"]).split("/")[1]


def commits(change: dict[str, Any], clone: Path, number: int) -> Iterator[dict[str, Any]]:
    """Yield the last commits of a project as changes of which nothing is known; the newest first."""
    paths = change.get("of", ["."])
    for line in git(clone, "log", "--first-parent", f"-{number}", "--format=%h %s", "--", *paths).splitlines():
        commit = line.split()[0]
        own = {"name": line[:60], "base": f"{commit}~1", "head": commit, "slower": [], "faster": []}
        yield {**change, **own, "kind": "commit"}


def itself(change: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield a change of a text that nothing reads several times: each row that a gate calls changed is a false alarm.

    Of one tree, both processes of a pair would run in turn.
    """
    for count in range(1, number + 1):
        own = {"name": f"{change['name']} alike {count}", "base": change["head"], "slower": [], "faster": []}
        own["added"] = {"alike.txt": f"{count}\n"}
        yield {**change, **own, "kind": "alike"}


def gate(change: dict[str, Any], tree: Path, base: str, options: list[str]) -> tuple[dict[str, Any], float]:
    """Run one gate; return its result and its minutes."""
    flow = tree.parent / f"{tree.name}.yaml"
    flow.write_text(change["workflow"])
    words = [sys.executable, "-m", "perfflow", "gate", str(flow), "--base", base, "--json", *options]
    began = time.monotonic()
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, check=False)
    minutes = (time.monotonic() - began) / 60
    if not done.stdout.startswith("{"):
        return {"error": done.stderr[-2000:]}, minutes
    return json.loads(done.stdout), minutes


def summary(change: dict[str, Any], result: dict[str, Any], minutes: float, *, backwards: bool) -> dict[str, Any]:
    """Return what counts of a gate: known changes found and missed, other rows that changed, and what is undecided."""
    known = {glob: word for word in ("slower", "faster") for glob in change.get(word, [])}
    turned = {"slower": "faster", "faster": "slower"} if backwards else {}
    found = {"kind": change.get("kind", "known"), "project": change["repository"], "change": change["name"]}
    found |= {"backwards": backwards, "minutes": round(minutes, 1)}
    if "error" in result:
        return found | {"error": result["error"]}
    rows = [row for row in result["benchmarks"] if row["gating"]]
    told = {"regressed": "slower", "improved": "faster"}
    changed = {row["name"]: told[row["decision"]] for row in rows if row["decision"] in told}
    hits = {
        glob: [name for name in changed if fnmatchcase(name, glob) and changed[name] == turned.get(word, word)]
        for glob, word in known.items()
    }
    expected = {name for names in hits.values() for name in names}
    decisions = Counter(row["decision"] for row in rows)
    undecided = [row["name"] for row in rows if row["decision"] == "unproven" and row["level"] is None]
    return found | {
        "verdict": result["gate"]["status"],
        "rows": len(rows),
        "found": sum(map(bool, hits.values())),
        "known": len(known),
        "others": {name: word for name, word in changed.items() if name not in expected},
        "decisions": dict(decisions),
        "undecided": undecided,
        "unchanged": Counter(row.get("unchanged") or "timed" for row in rows),
        "audited": sum(bool(row.get("unchanged") and row.get("pairs")) for row in rows),
        "load": os.getloadavg()[1],
        "reasons": [item["text"] for item in result["reasons"][:5]],
    }


def main() -> None:
    """Replay the chosen changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path, help="folder of the clones, by the name of each repository")
    parser.add_argument("names", nargs="*", help="parts of the names of the changes; default: all")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--forwards", action="store_true", help="no gate of the change turned round")
    parser.add_argument("--last", type=int, default=0, help="instead, the last LAST commits of these projects")
    parser.add_argument("--alike", type=int, default=0, help="instead, compare each head with itself, ALIKE times")
    parser.add_argument("--busy", type=int, default=0, help="number of busy loops beside the gates")
    asked = parser.parse_args()
    # So that the gate and the loops end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    table = yaml.safe_load(TABLE.read_text())
    chosen = [item for item in table if not asked.names or any(name in item["name"] for name in asked.names)]
    if asked.last:
        chosen = [each for item in chosen for each in commits(item, clone_of(item, asked.clones), asked.last)]
    if asked.alike:
        chosen = [each for item in chosen for each in itself(item, asked.alike)]
    forwards, timed = asked.forwards or asked.last or asked.alike, ["--all"] if asked.alike else []
    with busy(asked.busy):
        for change in chosen:
            clone = clone_of(change, asked.clones)
            tree = asked.clones / f"{clone.name}-replayed"
            for backwards in (False,) if forwards else (False, True):
                base, options = prepared(change, clone, tree, backwards=backwards)
                result, minutes = gate(change, tree, base, [*options, *timed, "--budget", asked.budget])
                print(json.dumps(summary(change, result, minutes, backwards=backwards)), flush=True)


if __name__ == "__main__":
    main()
