"""How many NVIDIA GPUs a program would see here, and why there are not more, by ``nvidia-smi -L``.

nvidia-smi lists what the driver drives. A program sees less: what CUDA_VISIBLE_DEVICES leaves of it, and of GPUs that
are split (MIG) one instance alone
(https://docs.nvidia.com/datacenter/tesla/mig-user-guide/latest/device-names-and-enumeration.html).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

from perfflow.model.lazy import dataclass, lazy_pattern

_GPU = lazy_pattern(r"^GPU (?P<index>\d+): .*\(UUID: (?P<uuid>GPU-[^)\s]*|[^)\s]+)\)")
_INSTANCE = lazy_pattern(r"^\s+MIG .*\(UUID: (?P<uuid>MIG-[^)\s]+)\)")
_TIMEOUT = 20
# Where Windows puts it for its Linux, often without a PATH that leads there.
_ELSEWHERE = "/usr/lib/wsl/lib"
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Gpus:
    """Number of GPUs that a program would see, and why there are not more; '' where nothing is in the way."""

    count: int
    why: str = ""


@dataclass(frozen=True)
class _Listed:
    """One GPU of the list: its UUID and those of its instances."""

    uuid: str
    instances: Sequence[str]


def visible(env_path: str) -> Gpus:
    """Ask nvidia-smi, looked up on ``env_path``. Raises nothing."""
    path = shutil.which("nvidia-smi", path=env_path) or shutil.which("nvidia-smi", path=_ELSEWHERE)
    if path is None:
        return Gpus(0, "nvidia-smi, which comes with NVIDIA's driver, is not on PATH")
    found = _asked(path)
    return found if isinstance(found, Gpus) else _seen(found, os.environ.get(VISIBLE))


@cache
def _asked(path: str) -> Gpus | tuple[_Listed, ...]:
    """What nvidia-smi lists, or why that is nothing. Asked once, since it takes long where nothing keeps the driver."""
    try:
        done = subprocess.run(
            [path, "-L"], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return Gpus(0, f"nvidia-smi did not answer in {_TIMEOUT} s")
    except (OSError, subprocess.SubprocessError) as error:
        return Gpus(0, f"nvidia-smi cannot be started: {error}")
    said = next((line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()), "nothing")
    found = _listed(done.stdout)
    if done.returncode or not found:
        ended = f"nvidia-smi exited with {done.returncode}" if done.returncode else "nvidia-smi lists none"
        return Gpus(0, f"{ended} and said: {said[:200]}")
    return found


def _listed(text: str) -> tuple[_Listed, ...]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if match := _GPU.match(line):
            found.append((match["uuid"], []))
        elif (match := _INSTANCE.match(line)) and found:
            found[-1][1].append(match["uuid"])
    return tuple(_Listed(uuid, instances) for uuid, instances in found)


def _seen(found: Sequence[_Listed], allowed: str | None) -> Gpus:
    """What is left for a program. CUDA reads the variable up to the first entry that names no device."""
    instances = [uuid for gpu in found for uuid in gpu.instances]
    whole = [gpu for gpu in found if not gpu.instances]
    if allowed is None:
        split = f"of {len(instances)} MIG instances a program sees one" if instances else ""
        return Gpus(max(len(whole), 1 if instances else 0), split)
    count = 0
    for entry in (word.strip() for word in allowed.split(",")):
        if not _names_one(entry, found, instances):
            break
        count += 1
        if entry.startswith("MIG-"):
            break
    return Gpus(count, f"{VISIBLE}={allowed!r} hides the others" if count < len(found) else "")


def _names_one(entry: str, found: Sequence[_Listed], instances: Sequence[str]) -> bool:
    if entry.isdecimal():
        return int(entry) < len(found)
    uuids = (*(gpu.uuid for gpu in found), *instances)
    return bool(entry) and sum(uuid.startswith(entry) for uuid in uuids) == 1
