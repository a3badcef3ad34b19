"""Enter a sandbox of Linux user namespaces, described by the words of bubblewrap, and run the spawner in it.

Run by a bare interpreter, where bubblewrap is missing or too old to show a tree as a copy (its
``--overlay-src`` came with 0.11). The process stays outside and waits; its child is process 1 of the sandbox. When that
ends, the kernel ends whatever is left in the sandbox.

Known words, with bubblewrap's meaning: ``--ro-bind FROM TO``, ``--bind FROM TO``, ``--tmpfs TO``, ``--dev TO``,
``--proc TO``, and ``--overlay-src FROM --tmp-overlay TO``. All namespaces are new.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import sys

from perfflow.execute import spawner

_NEW_USER, _NEW_NS, _NEW_PID, _NEW_NET, _NEW_IPC, _NEW_UTS, _NEW_CGROUP = (
    0x10000000,
    0x00020000,
    0x20000000,
    0x40000000,
    0x08000000,
    0x04000000,
    0x02000000,
)
_ALL = _NEW_USER | _NEW_NS | _NEW_PID | _NEW_NET | _NEW_IPC | _NEW_UTS | _NEW_CGROUP
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 4096, 16384, 1 << 18
_DETACH = 2
_MOUNT_SETATTR, _AT_RECURSIVE, _ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 442, 0x8000, 1, 2, 4
_PIVOT_ROOT, _CAPSET = (41, 91) if os.uname().machine in ("aarch64", "riscv64") else (155, 126)
_CAPABILITY_VERSION = 0x20080522
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 24, 38
_CAPABILITIES = 64
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MOST_PROCESSES = 8192
_INET, _DATAGRAM, _SET_FLAGS, _UP = 2, 2, 0x8914, 1
_REQUEST = 40
"""Bytes of a ``struct ifreq``."""
_BASE = "/tmp"  # noqa: S108 (any folder that exists: it is covered for an instant, and only for this process)
_OLD, _NEW = "/old", "/new"

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    words = (word.encode() if word else None for word in (source, target, kind))
    _checked(_libc.mount(*words, flags, options.encode() if options else None), f"mount {kind or source} on {target}")


def _read_only(place: str) -> None:
    """Make everything below a place read-only, and devices and set-user-id programs useless."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    size = ctypes.sizeof(attributes)
    done = _libc.syscall(_MOUNT_SETATTR, -100, place.encode(), _AT_RECURSIVE, ctypes.byref(attributes), size)
    _checked(done, f"make {place} read-only")


def _node(place: str, like: str) -> None:
    """Make a mount point of the same kind as ``like``."""
    if os.path.isdir(like):
        os.makedirs(place, exist_ok=True)
    elif not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))


def _lay_out(words: list[str]) -> None:
    """Mount what the words say below ``_NEW``. Sources are below ``_OLD``."""
    rest, overlays, lower = list(words), 0, ""
    while rest:
        word = rest.pop(0)
        if word == "--overlay-src":
            lower = _OLD + rest.pop(0)
            continue
        source = _OLD + rest.pop(0) if word in ("--ro-bind", "--bind") else ""
        target = rest.pop(0)
        place = _NEW + target.rstrip("/")
        if source:
            _node(place, source)
            _mount(source, place, flags=_BIND | _REC)
            if word == "--ro-bind":
                _read_only(place)
        elif word == "--tmpfs":
            os.makedirs(place, exist_ok=True)
            _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, "mode=1777")
        elif word == "--tmp-overlay":
            overlays += 1
            _overlay(lower, place, f"/{overlays}")
        elif word == "--dev":
            _devices(place)
        elif word != "--proc":  # which only a process of the new process namespace can mount
            raise OSError(errno.EINVAL, f"unknown word {word}")


def _overlay(lower: str, place: str, scratch: str) -> None:
    for folder in (scratch, f"{scratch}.work", place):
        os.makedirs(folder, exist_ok=True)
    # The folder itself keeps its owner and mode, as in a copy.
    status = os.stat(lower)
    os.chmod(scratch, status.st_mode & 0o7777)
    escaped = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    options = f"userxattr,lowerdir={escaped},upperdir={scratch},workdir={scratch}.work"
    _mount("overlay", place, "overlay", _NOSUID | _NODEV, options)


def _devices(place: str) -> None:
    os.makedirs(place, exist_ok=True)
    _mount("tmpfs", place, "tmpfs", _NOSUID, "mode=0755")
    for name in filter(lambda name: os.path.exists(f"{_OLD}/dev/{name}"), _DEVICES):
        _node(f"{place}/{name}", f"{_OLD}/dev/{name}")
        _mount(f"{_OLD}/dev/{name}", f"{place}/{name}", flags=_BIND)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{place}/{name}")
    os.mkdir(f"{place}/shm")
    os.chmod(f"{place}/shm", 0o1777)


def _change_root(root: str, old: str) -> None:
    _checked(_libc.syscall(_PIVOT_ROOT, root.encode(), old.encode()), f"make {root} the root")


def _start_loopback() -> None:
    """Let processes of the sandbox reach each other at 127.0.0.1, as bubblewrap does: tests start servers."""
    socket = _libc.socket(_INET, _DATAGRAM, 0)
    _checked(socket, "open a socket")
    request = b"lo".ljust(16, b"\0") + _UP.to_bytes(2, sys.byteorder)
    try:
        fcntl.ioctl(socket, _SET_FLAGS, request.ljust(_REQUEST, b"\0"))
    finally:
        os.close(socket)


def _drop_rights() -> None:
    """Give up all capabilities in the namespace, with which a program could take the sandbox apart."""
    for number in range(_CAPABILITIES):
        _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc.syscall(_CAPSET, ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "drop capabilities")
    _checked(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "forbid new privileges")


def _limit() -> None:
    """Bound what the processes of a sandbox can take from the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, _MOST_PROCESSES), (resource.RLIMIT_DATA, memory))
    for limit, most in limits:
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))


def enter(words: list[str]) -> None:
    """Return in a child of this process, which is process 1 of a new sandbox. This process ends as the child does.

    Raises OSError where the kernel does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_ALL), "new namespaces")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _start_loopback()
    _mount("", "/", flags=_REC | _PRIVATE)
    _mount("tmpfs", _BASE, "tmpfs", _NOSUID | _NODEV)
    for folder in (_OLD, _NEW):
        os.mkdir(_BASE + folder)
    # Afterwards nothing covers _BASE, so that its files can be shown too.
    _change_root(_BASE, _BASE + _OLD)
    os.chdir("/")
    _lay_out(words)
    os.chdir(_NEW)
    _change_root(".", ".")
    _checked(_libc.umount2(b".", _DETACH), "leave the old root")
    os.chdir("/")
    child = os.fork()
    if child:
        os.close(spawner.CONTROL)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    _libc.prctl(_PDEATHSIG, spawner.SIGKILL, 0, 0, 0)
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV)


def main() -> None:
    """Run the spawner, or the command after ``--``, in the sandbox that the words before ``--`` describe.

    Without words, this process is in its sandbox already.
    """
    words, here = sys.argv[2:], os.getcwd()
    end = words.index("--") if "--" in words else len(words)
    try:
        if words[:end]:
            enter(words[:end])
        _drop_rights()
        _limit()
        if words[end + 1 :]:
            os.chdir(here)
            os.execvp(words[end + 1], words[end + 1 :])  # noqa: S606
    except OSError as error:
        sys.exit(f"no sandbox: {error}")
    spawner.main()
