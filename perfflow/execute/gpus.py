"""Count the NVIDIA GPUs that a program can use, from ``nvidia-smi -L``, and explain why there are not more.

nvidia-smi lists all GPUs of the driver. A program can use fewer: those in CUDA_VISIBLE_DEVICES, and only one instance
of GPUs that are split (MIG)
(https://docs.nvidia.com/datacenter/tesla/mig-user-guide/latest/device-names-and-enumeration.html).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_GPU = re.compile(r"^GPU (?P<index>\d+): .*\(UUID: (?P<uuid>GPU-[^)\s]*|[^)\s]+)\)")
_INSTANCE = re.compile(r"^\s+MIG .*\(UUID: (?P<uuid>MIG-[^)\s]+)\)")
_TIMEOUT = 20
# Location under WSL, which is often not on PATH.
_ELSEWHERE = "/usr/lib/wsl/lib"
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpus:
    """Number of GPUs that a program can use, and why there are not more ('' if all are usable)."""

    count: int
    why: str = ""


@dataclass(frozen=True)
class _ListedGpu:
    """One GPU of the list: its UUID and those of its instances."""

    uuid: str
    instances: Sequence[str]


def visible(env_path: str) -> Gpus:
    """Return the GPUs that a program can use, from the nvidia-smi on ``env_path``. Raises nothing."""
    path = shutil.which("nvidia-smi", path=env_path) or shutil.which("nvidia-smi", path=_ELSEWHERE)
    if path is None:
        return Gpus(0, "nvidia-smi, which comes with NVIDIA's driver, is not on PATH")
    found = _query(path)
    return found if isinstance(found, Gpus) else _usable(found, os.environ.get(VISIBLE))


@cache
def _query(path: str) -> Gpus | tuple[_ListedGpu, ...]:
    """Return the GPUs that nvidia-smi lists, or why there are none. Cached: it is slow if the driver is not loaded."""
    try:
        done = subprocess.run(
            [path, "-L"], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return Gpus(0, f"nvidia-smi did not answer in {_TIMEOUT} s")
    except (OSError, subprocess.SubprocessError) as error:
        return Gpus(0, f"nvidia-smi cannot be started: {error}")
    output = next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "nothing")
    listed = _listed(done.stdout)
    if done.returncode or not listed:
        ended = f"nvidia-smi exited with {done.returncode}" if done.returncode else "nvidia-smi lists no GPU"
        return Gpus(0, f"{ended} and printed: {output[:200]}")
    return listed


def _listed(text: str) -> tuple[_ListedGpu, ...]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if match := _GPU.match(line):
            found.append((match["uuid"], []))
        elif (match := _INSTANCE.match(line)) and found:
            found[-1][1].append(match["uuid"])
    return tuple(_ListedGpu(uuid, instances) for uuid, instances in found)


def _usable(listed: Sequence[_ListedGpu], allowed: str | None) -> Gpus:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves. CUDA stops at its first entry that names no device."""
    instances = [uuid for gpu in listed for uuid in gpu.instances]
    whole = [gpu for gpu in listed if not gpu.instances]
    if allowed is None:
        split = f"a program can use only one of {len(instances)} MIG instances" if instances else ""
        return Gpus(max(len(whole), 1 if instances else 0), split)
    count = 0
    for entry in (word.strip() for word in allowed.split(",")):
        if not _names_one(entry, listed, instances):
            break
        count += 1
        if entry.startswith("MIG-"):
            break
    return Gpus(count, f"{VISIBLE}={allowed!r} hides the others" if count < len(listed) else "")


def _names_one(entry: str, found: Sequence[_ListedGpu], instances: Sequence[str]) -> bool:
    if entry.isdecimal():
        return int(entry) < len(found)
    uuids = (*(gpu.uuid for gpu in found), *instances)
    return bool(entry) and sum(uuid.startswith(entry) for uuid in uuids) == 1
