"""Find out what ``stream`` may use of this machine, say so, and become it.

    python stream_run.py PROGRAM SECONDS THREADS SIZE PRECISIONS

THREADS and SIZE (bytes of one array) are 0 where they are to be found: a thread for each core that this process may
use by its affinity and its cgroup's quota, and arrays of 4, 6 and 8 times the last caches of those cores, as STREAM's
rules ask, as far as half of the available memory holds three of them. The first line on standard output is a JSON
object that says what was found, the others are the program's. The exit status is the program's own, 2 with a reason on
stderr where it cannot be started or what was asked for cannot be had.

Run by a bare interpreter, so: standard library only.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

TIMES = (4, 6, 8)
"""Arrays, by the last caches together. STREAM asks for at least 4."""
SMALLEST = 64 << 20
"""Bytes of an array where caches are small: less is over too soon to be timed."""
UNKNOWN_CACHE = 64 << 20
"""Bytes that the last cache is taken for where the machine does not tell."""
SLICE = 16 << 20
"""Bytes of an array that are timed at once, at the least: a millisecond or so. Else twice the last caches."""
FEWEST = 1 << 20
"""Bytes of an array for each thread, at the least."""
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main() -> None:
    """Print what was found and replace this process by the program."""
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
    sys.stdout.flush()  # which the program takes over
    lists = (",".join(map(str, cpus)), str(slice_), ",".join(map(str, sizes)))
    try:
        os.execv(program, [program, seconds, *lists, precisions])  # noqa: S606 (the very point: no shell)
    except OSError as error:
        refuse(f"{program} could not be started: {error.strerror}")


def refuse(why: str) -> None:
    """End with a reason."""
    sys.stderr.write(f"{why}\n")
    sys.exit(2)


def sizes_of(size: int, cache: int, available: int, threads: int) -> list[int]:
    """Return the bytes of one array, for each size to try; half of the available memory holds three of the largest."""
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
    """Return bytes in words."""
    return f"{size / (1 << 20):,.0f} MiB"


def read(path: Path) -> str:
    """Return what a file of the kernel says, '' where it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def last_caches(root: Path, cpus: list[int]) -> int:
    """Return the bytes of the last caches of some cores together, each counted once; 0 where the machine does not tell.

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
    """Return the bytes that ``32768K`` says, 0 for anything else."""
    number, unit = text[:-1], text[-1:]
    return int(number) * UNITS[unit] if number.isdecimal() and unit in UNITS else 0


def groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders whose limits hold for this process, its own cgroup first, of version 2 and of version 1.

    In a container the path is often the host's, and what is mounted is the group itself.
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
    """Return how many cores' time the process may use, None where there is no limit."""
    limits = limits_of(root, "cpu", ["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"])
    return min((quota / period for _, quota, period in limits if quota and period), default=None)


def available_memory(root: Path) -> int:
    """Return the bytes that can be had without swapping: the kernel's estimate, or what the cgroups leave."""
    known = table(root / "proc/meminfo")
    left = [known.get("MemAvailable:", known.get("MemFree:", 0)) << 10]
    names = (["memory.max", "memory.current"], ["memory.limit_in_bytes", "memory.usage_in_bytes"])
    for folder, most, used in limits_of(root, "memory", *names):
        # The page cache is given back first.
        left.append(max(0, most - used + table(folder / "memory.stat").get("inactive_file", 0)))
    return min(left)


def limits_of(root: Path, controller: str, *names: list[str]) -> Iterator[tuple[Path, int, int]]:
    """Yield the folders that limit this process with the two numbers in files of these names, by either version."""
    for folder in groups(root, controller):
        for files in names:
            words = " ".join(read(folder / file) for file in files).split()
            if len(words) == 2 and all(word.isdecimal() for word in words):
                yield folder, int(words[0]), int(words[1])


def table(path: Path) -> dict[str, int]:
    """Return the numbers in the second column of a file by the words in the first."""
    rows = (line.split() for line in read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def is_virtual(root: Path) -> bool:
    """Whether the machine says that a hypervisor is below it; one that hides is not seen."""
    flags = next((line for line in read(root / "proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    if "hypervisor" in flags.split() or read(root / "sys/hypervisor/type"):
        return True
    maker = read(root / "sys/class/dmi/id/sys_vendor") + read(root / "sys/class/dmi/id/product_name")
    rented = "Amazon EC2" in maker and ".metal" not in maker
    return rented or any(word in maker for word in ("QEMU", "KVM", "VMware", "VirtualBox", "Virtual Machine"))


if __name__ == "__main__":
    main()
