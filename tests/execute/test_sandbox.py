"""What a real process in a sandbox sees, and what is left of it."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfflow.execute import sandbox
from perfflow.execute.child import MARK, Ended, Spawner
from perfflow.execute.sandbox import Sandbox


@dataclass(frozen=True)
class Place:
    """A sandboxed tree with the folders around it."""

    root: Path
    tree: Path
    folder: Path
    box: Sandbox
    env: Mapping[str, str]

    def told(self, spawner: Spawner, text: str, *, builds: bool = False) -> str:
        """Run a shell text in a new sandbox, and return what it prints."""
        with spawner.within(self.box.words(self.env, [self.folder], builds=builds)) as inner:
            output = self.folder / "output"
            done = inner.run(("sh", "-c", f"({text}) 2>&1"), env=self.env, cwd=self.tree, stdout=output, timeout=60)
        assert done.ended is Ended.EXITED
        return output.read_text()


TALK = """\
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname(), 5) as client:
        client.send(b"heard")
        print(server.accept()[0].recv(9).decode())
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    keeper, why = sandbox.available()
    if not keeper:
        pytest.skip(why)
    project, cache, home = tmp_path / "project", tmp_path / "cache", tmp_path / "home"
    tree, other, folder = cache / "1" / "here", cache / "1" / "else", project / ".perfflow" / "steps" / "x"
    for path in (project / ".git", project / "shared", tree, other, folder, home / ".cargo" / "bin"):
        path.mkdir(parents=True)
    for path in (
        tree / "code",
        other / "code",
        project / ".git" / "HEAD",
        project / "secret",
        project / "shared" / "s",
    ):
        path.write_text("text\n")
    (home / "key").write_text("text\n")
    (home / ".cargo" / "bin" / "tool").write_text("text\n")
    box = Sandbox(keeper, (tree,), (project, cache), (project / "shared",))
    env = {"PATH": os.environ["PATH"], "HOME": str(home), MARK: "test"}
    return Place(project, tree, folder, box, env)


def test_it_sees_its_tree_and_toolchains_and_nothing_else_of_the_user(place: Place, keeper: Spawner) -> None:
    found = place.told(keeper, f"find {place.root.parent} -type f")
    seen = {str(Path(line).relative_to(place.root.parent)) for line in found.splitlines()}
    output = ".perfflow/steps/x/output"
    assert seen == {"cache/1/here/code", "project/shared/s", "home/.cargo/bin/tool", f"project/{output}"}


def test_what_it_writes_ends_with_it(place: Place, keeper: Spawner) -> None:
    files = [place.tree / "code", place.tree / "new", Path(place.env["HOME"]) / "x", Path("/tmp/x"), Path("/dev/shm/x")]
    text = "; ".join(f"cat {path} && echo seen; echo changed > {path} && cat {path}" for path in files[1:])
    first, second = (place.told(keeper, f"rm code; {text}") for _ in range(2))
    assert first == second
    assert first.count("changed") == len(files) - 1
    assert "seen" not in first
    assert (place.tree / "code").read_text() == "text\n"
    assert not (place.tree / "new").exists()


def test_a_build_writes_into_the_tree(place: Place, keeper: Spawner) -> None:
    place.told(keeper, "echo built > program; echo x > $HOME/x", builds=True)
    assert (place.tree / "program").read_text() == "built\n"
    assert not (Path(place.env["HOME"]) / "x").exists()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("touch /etc/x", "Read-only file system"),
        (f"touch {Path(sys.prefix)}/x && test -e {Path(sys.prefix)}/x; echo $?", "Read-only file system|^0"),
        ("echo x > shared-link", "Read-only file system"),
        ("mount -t tmpfs x /mnt", "permission denied|must be superuser|not permitted"),
        ("umount /tmp", "must be superuser|not permitted"),
        ("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 22), 5)'", "refused|unreachable"),
        ("kill -9 1 && sleep 0.1; echo alive", "alive"),
        ("ls /proc | grep -c '^[0-9]'", "^[1-9]$"),
        ("grep CapEff /proc/self/status", "0000000000000000"),
    ],
)
def test_it_cannot_reach_out(place: Place, keeper: Spawner, text: str, refusal: str) -> None:
    (place.tree / "shared-link").symlink_to(place.root / "shared" / "s")
    assert re.search(refusal, place.told(keeper, text)) is not None
    assert not (Path(sys.prefix) / "x").exists()


def test_processes_that_it_leaves_end_with_it(place: Place, keeper: Spawner) -> None:
    (place.folder / "fifo").write_text("")
    place.told(keeper, f"setsid sh -c 'sleep 1; echo alive > {place.folder}/fifo' & echo started")
    assert (place.folder / "fifo").read_text() == ""


def test_secrets_and_sockets_are_no_part_of_its_environment(place: Place) -> None:
    env = {"HOME": "/home/me", "GITHUB_TOKEN": "ghp_x", "SSH_AUTH_SOCK": "/run/agent", "PATH": "/bin"}
    assert place.box.environment(env) == {"HOME": "/home/me", "PATH": "/bin", "RUSTC_WRAPPER": ""}


@pytest.mark.parametrize(("wrapper", "kept"), [("/usr/bin/sccache", ""), ("", ""), ("/opt/checked-rustc",) * 2])
def test_a_compiler_needs_no_server_outside(place: Place, wrapper: str, kept: str) -> None:
    assert place.box.environment({"RUSTC_WRAPPER": wrapper})["RUSTC_WRAPPER"] == kept


def test_its_processes_reach_each_other_by_the_loopback_device(place: Place, keeper: Spawner) -> None:
    (place.tree / "talk.py").write_text(TALK)
    assert place.told(keeper, "python3 talk.py") == "heard\n"


def test_a_stop_reaches_a_process_in_a_sandbox(place: Place, fresh: Spawner) -> None:
    threading.Timer(0.3, fresh.stop).start()
    words = place.box.words(place.env, [place.folder], builds=False)
    with fresh.within(words) as inner:
        done = inner.run(("sleep", "60"), env=place.env, cwd=place.tree, timeout=50)
    assert done.ended is Ended.STOPPED
