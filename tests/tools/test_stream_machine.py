"""Cores, caches and memory that the driver of ``stream`` reads from trees of files like those of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.tools.linux.drivers import stream_run

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def cache(cpu: int, index: int, level: int, size: str, shared: str, kind: str = "Unified") -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/level": str(level),
        f"{folder}/size": size,
        f"{folder}/shared_cpu_list": shared,
        f"{folder}/type": kind,
    }


def test_last_caches_are_counted_once_each(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for cpu in range(4):
        files |= cache(cpu, 0, 1, "32K", str(cpu), "Data") | cache(cpu, 1, 1, "32K", str(cpu), "Instruction")
        files |= cache(cpu, 2, 2, "1024K", str(cpu)) | cache(cpu, 3, 3, "32768K", "0-1" if cpu < 2 else "2-3")
    root = tree(tmp_path, files)
    assert stream_run.last_caches(root, [0, 1]) == 32 << 20
    assert stream_run.last_caches(root, [0, 1, 2]) == 64 << 20
    assert stream_run.last_caches(root, [9]) == 0


def test_the_last_cache_may_be_each_core_s_own_or_unsaid(tmp_path: Path) -> None:
    own = cache(0, 0, 1, "64K", "0", "Data") | cache(0, 1, 2, "1M", "0") | cache(1, 1, 2, "1M", "1")
    assert stream_run.last_caches(tree(tmp_path, own), [0, 1]) == 2 << 20
    instructions = cache(2, 0, 1, "64K", "2", "Instruction") | cache(3, 0, 3, "", "3")
    assert stream_run.last_caches(tree(tmp_path, instructions), [2, 3]) == 0


CGROUP2 = {"proc/self/cgroup": "0::/a/b", "proc/meminfo": "MemTotal: 9437184 kB\nMemAvailable: 8388608 kB"}
CGROUP1 = {
    "proc/self/cgroup": "9:name=systemd:/x\n4:memory:/docker/1\n1:cpu,cpuacct:/docker/1",
    "proc/meminfo": "MemAvailable: 8388608 kB",
}


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({"sys/fs/cgroup/a/b/cpu.max": "max 100000"}, None),
        ({"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "150000 100000"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),  # a container with its own group as the mount
        ({**CGROUP1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, None),
        (
            {
                **CGROUP1,
                "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000",
            },
            2,
        ),
    ],
)
def test_the_quota_of_a_cgroup(files: dict[str, str], cores: float | None, tmp_path: Path) -> None:
    assert stream_run.cores_of_quota(tree(tmp_path, CGROUP2 | files)) == cores


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 8 * GIB),
        ({"sys/fs/cgroup/a/b/memory.max": "max", "sys/fs/cgroup/a/b/memory.current": "1"}, 8 * GIB),
        (
            {
                "sys/fs/cgroup/a/memory.max": str(3 * GIB),
                "sys/fs/cgroup/a/memory.current": str(2 * GIB),
                "sys/fs/cgroup/a/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            },
            2 * GIB,
        ),
        (
            {
                **CGROUP1,
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(GIB),
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "0",
            },
            GIB,
        ),
    ],
)
def test_the_memory_that_is_left(files: dict[str, str], available: int, tmp_path: Path) -> None:
    assert stream_run.available_memory(tree(tmp_path, CGROUP2 | files)) == available


def test_arrays_are_beyond_the_cache_and_leave_half_of_the_memory() -> None:
    assert stream_run.sizes_of(0, 32 << 20, 64 * GIB, 8) == [128 << 20, 192 << 20, 256 << 20]
    assert stream_run.sizes_of(0, 1 << 20, 64 * GIB, 8) == [64 << 20]
    for available in (GIB, 2 * GIB, 3 * GIB, 4 * GIB):
        sizes = stream_run.sizes_of(0, 64 << 20, available, 2)
        assert 3 * sizes[-1] <= available / 2
        assert sizes == sorted(set(sizes))
    assert stream_run.sizes_of(0, 256 << 20, 4 * GIB, 2) == [4 * GIB // 6]
    assert stream_run.sizes_of(5 << 20, 256 << 20, 4 * GIB, 2) == [5 << 20]


@pytest.mark.parametrize(("size", "available"), [(GIB, 5 * GIB), (1 << 10, 5 * GIB), (0, 4 << 20)])
def test_sizes_that_cannot_be_are_refused(size: int, available: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        stream_run.sizes_of(size, 32 << 20, available, 4)
    assert caught.value.code == 2
    assert "MiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "virtual"),
    [
        ({}, False),
        ({"proc/cpuinfo": "processor: 0\nflags\t\t: fpu sse2 hypervisor avx"}, True),
        ({"proc/cpuinfo": "flags : fpu sse2"}, False),
        ({"sys/hypervisor/type": "xen"}, True),
        ({"sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "m6g.large"}, True),
        ({"sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "m6g.metal"}, False),
    ],
)
def test_a_hypervisor_is_seen(files: dict[str, str], virtual: bool, tmp_path: Path) -> None:
    assert stream_run.is_virtual(tree(tmp_path, files)) is virtual
