"""The key of a build: a hash of everything that it is known to depend on. Builds of one key are not repeated.

What a build reads beyond that (the network, a file outside of the tree that `data` does not declare) is not in the key:
`gate --fresh` builds again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from perfflow.execute.context import TreeContext
from perfflow.machine.facts import facts
from perfflow.model.version import VERSION
from perfflow.session.session import built_with

_TOOLCHAINS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("cc", "c++", "clang", "ld", "cmake", "ninja", "make", "cargo", "node", "npm"), ("--version",)),
    **dict.fromkeys(("python3", "dotnet", "zig", "swift"), ("--version",)),
    "rustc": ("-vV",),
    "go": ("version",),
    "java": ("-version",),
}
"""Programs that build, with the arguments that print their version."""
_PATIENCE = 20.0
"""Seconds to wait for a version."""
_OF_A_SESSION = (
    *("ACTIONS_", "BUILD_", "BUILDKITE", "CIRCLE", "CI_", "DBUS_", "DISPLAY", "GITHUB_", "GITLAB_", "GIT_", "JENKINS_"),
    *("JOB_", "PERFFLOW_", "PYTEST_", "RUNNER_", "SLURM_", "SSH_", "SYSTEMD_", "TERM", "TMUX", "VSCODE_", "XDG_"),
)
"""Beginnings of the names of variables that differ from session to session and from job to job."""
_ALSO = frozenset(
    (
        "_",
        "COLORTERM",
        "COLUMNS",
        "HOSTNAME",
        "INVOCATION_ID",
        "LINES",
        "LOGNAME",
        "LS_COLORS",
        "OLDPWD",
        "PWD",
        "SHLVL",
    )
)


def build_key(context: TreeContext, building: Collection[str], tree: str, data: Mapping[str, str]) -> str:
    """Return the key of a build of ``tree``: its steps with settings and environment, data, toolchains and machine.

    data: sha256 of the declared input files by path.
    """
    # The processor, since programs may be built for the one that builds them (-march=native).
    machine = [facts()["cpu"], facts()["architecture"], facts()["system"]]
    environment = {name: value for name, value in context.inherited.items() if not _is_of_a_session(name)}
    parts: list[Any] = [tree, built_with(context, building), environment, dict(data), toolchains(), machine, VERSION]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()


def toolchain_key() -> str:
    """Return a short text that differs if builds of one machine cannot be used on this one, or with its toolchains."""
    known = facts()
    text = json.dumps([toolchains(), VERSION])
    return f"{known['system']}-{known['architecture']}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lower()


def _is_of_a_session(name: str) -> bool:
    return name in _ALSO or name.startswith(_OF_A_SESSION)


def toolchains() -> tuple[tuple[str, str], ...]:
    """Return the build programs on PATH with what they print as their version."""
    found = [name for name in sorted(_TOOLCHAINS) if shutil.which(name)]
    with ThreadPoolExecutor() as threads:
        return tuple(zip(found, threads.map(_version, found), strict=True))


@cache
def _version(name: str) -> str:
    try:
        done = subprocess.run(
            [name, *_TOOLCHAINS[name]],
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")
