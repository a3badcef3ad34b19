"""Detect the resources of this machine for ``stream``, print them, and exec the program.

    python stream_run.py PROGRAM SECONDS THREADS SIZE PRECISIONS

If THREADS or SIZE (bytes of one array) is 0, it is chosen: a thread for each core that the affinity and the cgroup's
quota of this process allow, and arrays of 4, 6 and 8 times the last-level caches of these cores, as STREAM's rules
require, but three arrays take at most half of the available memory. The first line on standard output is a JSON object
with the resources, the other lines are from the program. The exit status is that of the program, or 2 with a reason on
stderr if it cannot be started or THREADS or SIZE is not possible.

A bare interpreter runs this file, so it uses only the standard library.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

TIMES = (4, 6, 8)
"""Sizes of arrays, as multiples of all last-level caches. STREAM requires at least 4."""
SMALLEST = 64 << 20
"""Smallest array in bytes on machines with small caches; smaller ones take too little time."""
UNKNOWN_CACHE = 64 << 20
"""Assumed bytes of the last-level cache if its size is unknown."""
SLICE = 16 << 20
"""Smallest part of an array in bytes that is timed at once, about 1 ms. It is at least twice the last-level caches."""
FEWEST = 1 << 20
"""Smallest array in bytes per thread."""
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main() -> None:
    """Print the resources and replace this process by the program."""
    program, seconds, threads, size, precisions = sys.argv[1:]
    root = Path("/")
    allowed = sorted(os.sched_getaffinity(0))
    quota = cores_of_quota(root)
    cpus = allowed[: math.ceil(quota)] if quota else allowed
    if int(threads) > len(allowed):
        refuse(f"{threads} threads were asked for, but this process may use {len(allowed)} cores: name fewer")
    if int(threads):
        cpus = allowed[: int(threads)]
    cache = last_caches(root, cpus)
    available = available_memory(root)
    sizes = sizes_of(int(size), cache or UNKNOWN_CACHE, available, len(cpus))
    slice_ = max(SLICE, 2 * (cache or UNKNOWN_CACHE))
    cores = {"cores": os.sysconf("SC_NPROCESSORS_ONLN"), "allowed": len(allowed), "quota": quota, "threads": len(cpus)}
    memory = {"cache": cache, "available": available, "hypervisor": is_virtual(root)}
    sys.stdout.write(json.dumps({"kind": "machine", **cores, **memory}) + "\n")
    sys.stdout.flush()  # before the program continues on the same stdout
    lists = (",".join(map(str, cpus)), str(slice_), ",".join(map(str, sizes)))
    try:
        os.execv(program, [program, seconds, *lists, precisions])  # noqa: S606 (the very point: no shell)
    except OSError as error:
        refuse(f"{program} could not be started: {error.strerror}")


def refuse(why: str) -> None:
    """Print a reason and exit with 2."""
    sys.stderr.write(f"{why}\n")
    sys.exit(2)


def sizes_of(size: int, cache: int, available: int, threads: int) -> list[int]:
    """Return the sizes of one array in bytes; three of the largest fit into half of the available memory."""
    most = available // 6
    if size:
        if size > most:
            refuse(f"3 arrays of {mib(size)} are more than half of the {mib(available)} available: name a smaller size")
        if size < FEWEST * threads:
            refuse(f"arrays of {mib(size)} are too small for {threads} threads: name at least {mib(FEWEST * threads)}")
        return [size]
    wanted = [max(SMALLEST, times * cache) for times in TIMES]
    if most < FEWEST * threads:
        refuse(f"of {mib(available)} available memory half is too little for 3 arrays beyond the caches")
    return sorted({min(each, most) for each in wanted}) if most > wanted[0] else [most]


def mib(size: int) -> str:
    """Return a size in MiB as text."""
    return f"{size / (1 << 20):,.0f} MiB"


def read(path: Path) -> str:
    """Return the text of a kernel file, '' if it does not exist."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def last_caches(root: Path, cpus: list[int]) -> int:
    """Return the total bytes of the last-level caches of some cores, each cache counted once; 0 if unknown.

    https://docs.kernel.org/admin-guide/abi-stable-files.html (sysfs-devices-system-cpu)
    """
    found: dict[str, int] = {}
    for cpu in cpus:
        caches = []
        for folder in (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            level, size = read(folder / "level"), size_in(read(folder / "size"))
            if level.isdecimal() and size and read(folder / "type") != "Instruction":
                caches.append((int(level), read(folder / "shared_cpu_list") or str(cpu), size))
        if caches:
            last, shared, size = max(caches)
            found[f"{last}: {shared}"] = size
    return sum(found.values())


def size_in(text: str) -> int:
    """Return the bytes of a size such as ``32768K``, 0 for any other text."""
    number, unit = text[:-1], text[-1:]
    return int(number) * UNITS[unit] if number.isdecimal() and unit in UNITS else 0


def groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of cgroup versions 1 and 2 whose limits apply to this process, its own group first.

    In a container the path is often that of the host, while the group itself is mounted.
    """
    for line in read(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif controller in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / controllers, root / "sys/fs/cgroup" / controller]
        else:
            continue
        own = Path(path.lstrip("/"))
        for mount in mounts:
            yield from (mount / part for part in (own, *own.parents) if (mount / part).is_dir())


def cores_of_quota(root: Path) -> float | None:
    """Return the CPU quota of the process in cores, None without a limit."""
    limits = limits_of(root, "cpu", ["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"])
    return min((quota / period for _, quota, period in limits if quota and period), default=None)


def available_memory(root: Path) -> int:
    """Return the bytes available without swapping: the kernel's estimate, or less if cgroups limit it."""
    known = table(root / "proc/meminfo")
    left = [known.get("MemAvailable:", known.get("MemFree:", 0)) << 10]
    names = (["memory.max", "memory.current"], ["memory.limit_in_bytes", "memory.usage_in_bytes"])
    for folder, most, used in limits_of(root, "memory", *names):
        # The page cache can be reclaimed.
        left.append(max(0, most - used + table(folder / "memory.stat").get("inactive_file", 0)))
    return min(left)


def limits_of(root: Path, controller: str, *names: list[str]) -> Iterator[tuple[Path, int, int]]:
    """Yield the folders that limit this process, with the two numbers in files of these names, for both versions."""
    for folder in groups(root, controller):
        for files in names:
            words = " ".join(read(folder / file) for file in files).split()
            if len(words) == 2 and all(word.isdecimal() for word in words):
                yield folder, int(words[0]), int(words[1])


def table(path: Path) -> dict[str, int]:
    """Return the numbers in the second column of a file by the words in the first column."""
    rows = (line.split() for line in read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def is_virtual(root: Path) -> bool:
    """Whether the machine reports a hypervisor. A hidden one is not detected."""
    flags = next((line for line in read(root / "proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if "hypervisor" in flags.split() or read(root / "sys/hypervisor/type"):
        return True
    maker = read(root / "sys/class/dmi/id/sys_vendor") + read(root / "sys/class/dmi/id/product_name")
    rented = "Amazon EC2" in maker and ".metal" not in maker
    return rented or any(word in maker for word in ("QEMU", "KVM", "VMware", "VirtualBox", "Virtual Machine"))


if __name__ == "__main__":
    main()
