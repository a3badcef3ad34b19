"""Whether cargo, Go, Node.js, Java and C++ libraries work here, for tests that need them; projects in some of these."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from platformdirs import user_cache_path


def why_no_cargo() -> str:
    """Return why cargo cannot be used; '' if it can. rustup's cargo is on PATH also without a toolchain."""
    try:
        done = subprocess.run(["cargo", "--version"], capture_output=True, text=True, timeout=900, check=False)
    except FileNotFoundError:
        return "cargo is not on PATH (https://rustup.rs)"
    except OSError as error:
        return f"cargo does not run: {error.strerror}"
    return f"cargo does not run: {done.stderr.strip()}" if done.returncode else ""


_REASON = why_no_cargo()
needs_cargo = pytest.mark.skipif(bool(_REASON), reason=_REASON)


needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not on PATH: apt-get install golang-go")


def has_layouts() -> bool:
    """Return whether Go's linker can order functions by a seed. Go 1.19 of Debian 12 cannot."""
    if shutil.which("go") is None:
        return False
    return (
        "-randlayout"
        in subprocess.run(["go", "tool", "link", "-h"], capture_output=True, text=True, check=False).stderr
    )


needs_catch2 = pytest.mark.skipif(
    not any(Path("/usr/include/catch2", name).exists() for name in ("catch.hpp", "catch_all.hpp")),
    reason="Catch2 is not installed: apt-get install catch2",
)


NODE_MODULES = user_cache_path("perfflow") / "node-bench-1" / "node_modules"


def _why_no_node() -> str:
    """Return why tests of Node.js cannot run; '' if they can."""
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "vitest").is_dir():
        return "node, tinybench, mitata or vitest is not installed (sh scripts/install tools,dev, with npm)"
    printed = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    # vitest 4 needs it; Debian 12 has Node.js 18.
    return "" if int(printed.removeprefix("v").partition(".")[0] or 0) >= 20 else f"vitest needs Node.js 20: {printed}"


_NO_NODE = _why_no_node()
needs_node = pytest.mark.skipif(bool(_NO_NODE), reason=_NO_NODE)


def node_project(folder: Path) -> Path:
    """Copy the Node.js project of these tests into a folder that may exist; return it."""
    shutil.copytree(Path(__file__).parent / "tools" / "node", folder, dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(NODE_MODULES)
    return folder


needs_java = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK is on PATH: apt-get install default-jdk")
MAVEN_PROJECT = Path(__file__).parent / "tools" / "maven"
JMH_JAR = user_cache_path("perfflow") / "jmh-1" / "benchmarks" / "target" / "benchmarks.jar"
"""The jar of this project, which scripts/install builds."""
needs_jmh = pytest.mark.skipif(
    not (shutil.which("mvn") and shutil.which("javac") and JMH_JAR.exists()),
    reason="a JDK, Maven or JMH is not installed (sh scripts/install tools,dev)",
)


def maven_project(folder: Path) -> Path:
    """Copy the Maven project of these tests into a new folder; return it."""
    return Path(shutil.copytree(MAVEN_PROJECT, folder))
