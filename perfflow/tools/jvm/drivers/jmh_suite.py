"""Build the jars with the JMH benchmarks of a Maven or Gradle project, and record their benchmarks.

    python jmh_suite.py FOLDER SETTINGS
    python jmh_suite.py FOLDER

SETTINGS is JSON: ``java``, the program; ``jar``, a jar that exists, '' to build; ``module``, the Maven module or Gradle
project to build, '' for all; ``flags`` of the build; ``filter``, a pattern of benchmarks. It runs in the folder of the
project. suite.json in FOLDER has each jar with the names and parameters of its benchmarks, and contents-N.txt the
hashes of its files: jars of the same classes differ in their times. Jars of an earlier build are removed first,
so that none of them is measured after a failed build. The exit status is 1 if a build fails or no benchmark is found;
stderr has the reason. The second form prints the names in suite.json, one per line.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

MAIN = "org.openjdk.jmh.Main"
LIST = "META-INF/BenchmarkList"
PROGRAM = f"{MAIN.replace('.', '/')}.class"
GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
DEEPEST = 8
PARAMETER = re.compile(r'  param "([^"]+)" = \{(.*)\}')
DATED = re.compile(r"META-INF/maven/.*/pom\.properties")


def main() -> None:
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        write(folder, json.loads(sys.argv[2]))
    else:
        suite = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
        text = "".join(f"{name}\n" for bench in suite["benches"] for name in bench["ids"])
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def write(folder: Path, settings: Mapping[str, Any]) -> None:
    (folder / "suite.json").unlink(missing_ok=True)
    jars = [Path(settings["jar"]).absolute()] if settings["jar"] else built(settings["module"], settings["flags"])
    left_out: dict[str, str] = {}
    found = [(jar, benchmarks(settings["java"], jar, settings["filter"], left_out)) for jar in jars]
    if not any(names for _, names in found):
        none = "no benchmark matches the filter" if settings["filter"] else f"{jars[0].name} has no benchmark"
        sys.exit("; ".join(left_out.values()) or none)
    short = short_names({own for _, names in found for own in names})
    benches: list[dict[str, Any]] = []
    for jar, names in found:
        if not names:
            continue
        (folder / f"contents-{len(benches)}.txt").write_text(contents(jar), encoding="utf-8")
        ids = {}
        for own, parameters in names.items():
            for chosen in combinations(parameters):
                name = "/".join((short[own], *(f"{key}={value}" for key, value in chosen.items())))
                ids[name] = {"name": own, "parameters": chosen}
        benches.append({"jar": str(jar), "ids": ids})
    suite = {"benches": benches, "left_out": list(left_out.values())}
    (folder / "suite.json").write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")


def built(module: str, flags: Sequence[str]) -> list[Path]:
    """Build the project here, and return its jars with benchmarks, the first one of each module."""
    for jar in jars_here():
        jar.unlink()
    argv = (maven if Path("pom.xml").is_file() else gradle)(module)
    try:
        status = subprocess.run([*argv, *flags], stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")
    if status:
        sys.exit(f"{Path(argv[0]).name} exits with {status}")
    found: dict[Path, Path] = {}
    for jar in sorted(jars_here(), key=lambda jar: (jar.name != "benchmarks.jar", jar)):
        if PROGRAM in names_in(jar):
            found.setdefault(jar.parent, jar.absolute())
    if not found:
        thin = next(iter(jars_here()), None)
        if thin:
            sys.exit(f"{thin} lacks JMH itself: build a jar with all dependencies, by maven-shade-plugin or jmhJar")
        sys.exit(f"the build made no jar with benchmarks ({LIST}): is jmh-generator-annprocess among its processors?")
    return sorted(found.values())


def maven(module: str) -> list[str]:
    program = "./mvnw" if os.access("mvnw", os.X_OK) else "mvn"
    chosen = ["--projects", module, "--also-make"] if module else []
    return [program, "--quiet", "--batch-mode", "-Dstyle.color=never", "-DskipTests", *chosen, "package"]


def gradle(module: str) -> list[str]:
    if not any(Path(name).is_file() for name in GRADLE):
        sys.exit(f"there is no pom.xml and no build.gradle in {Path.cwd()}")
    program = "./gradlew" if os.access("gradlew", os.X_OK) else "gradle"
    return [program, "--quiet", "--no-daemon", f":{module.strip(':')}:jmhJar" if module else "jmhJar"]


def jars_here() -> Iterator[Path]:
    """Yield the jars that builds of this project made with benchmarks."""
    for folder, folders, files in os.walk("."):
        place = Path(folder)
        deep = len(place.parts) >= DEEPEST
        folders[:] = [] if deep else [name for name in folders if not name.startswith(".") and name != "node_modules"]
        if place.name == "target" or place.parts[-2:] == ("build", "libs"):
            jars = (place / name for name in files if name.endswith(".jar") and not name.startswith("original-"))
            yield from (jar for jar in jars if LIST in names_in(jar))


def names_in(jar: Path) -> list[str]:
    try:
        with zipfile.ZipFile(jar) as content:
            return content.namelist()
    except (OSError, zipfile.BadZipFile):
        return []


def contents(jar: Path) -> str:
    """Return the hashes of a jar's files, sorted. The archiver writes a date into pom.properties."""
    with zipfile.ZipFile(jar) as content:
        rows = []
        for name in sorted(set(content.namelist())):
            data = content.read(name)
            if DATED.fullmatch(name):
                data = re.sub(rb"(?m)^#.*\n", b"", data)
            rows.append(f"{hashlib.sha256(data).hexdigest()} {name}\n")
    return "".join(rows)


def benchmarks(java: str, jar: Path, pattern: str, left_out: dict[str, str]) -> dict[str, dict[str, list[str]]]:
    """Return the values of the parameters of each benchmark in a jar. Those that JMH cannot choose are left out."""
    if not jar.is_file():
        sys.exit(f"{jar}: no such file")
    argv = [java, "-cp", str(jar), MAIN, "-lp", *([pattern] if pattern else [])]
    done = subprocess.run(argv, stdout=PIPE, text=True, errors="replace", check=False)
    if done.returncode:
        sys.stderr.write(done.stdout)
        sys.exit(f"{jar.name} does not list its benchmarks: {MAIN} exits with {done.returncode}")
    with zipfile.ZipFile(jar) as content:
        listed = content.read(LIST).decode("utf-8", "replace")
    found: dict[str, dict[str, list[str]]] = {}
    own = ""
    for line in done.stdout.splitlines()[1:]:
        if match := PARAMETER.fullmatch(line):
            values = match[2].split(", ")
            found[own][match[1]] = values
            # Where values contain commas, this list does not tell where they end, and JMH's options neither.
            if len(values) != number_of_values(listed, own, match[1]) or any("," in value for value in values):
                left_out[own] = f"{own} is left out: a value of its parameter {match[1]} contains a comma"
        elif line.strip():
            own = line.strip()
            found[own] = {}
    return {own: parameters for own, parameters in found.items() if own not in left_out}


def number_of_values(listed: str, own: str, parameter: str) -> int:
    """Return how many values of a parameter a jar's own list has; 0 if it is not there."""
    owner, _, method = own.rpartition(".")
    line = next((line for line in listed.splitlines() if f" {owner} " in line and f" {method} " in line), "")
    match = re.search(rf" {len(parameter)} {re.escape(parameter)} (\d+) ", line)
    return int(match[1]) if match else 0


def short_names(names: set[str]) -> dict[str, str]:
    """Return the class and method of each benchmark; with the package if two are alike."""
    found = {name: ".".join(name.split(".")[-2:]) for name in names}
    return found if len(set(found.values())) == len(found) else {name: name for name in names}


def combinations(parameters: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    names = sorted(parameters)
    for values in itertools.product(*(parameters[name] for name in names)):
        yield dict(zip(names, values, strict=True))


if __name__ == "__main__":
    main()
