"""Train a tiny model on records that are slow to load, and say in JSON how fast that was.

    python train.py [--num-workers 2 --persistent-workers --prefetch-factor 4] [--pin-memory] [--autocast] [--compile]
    python train.py --loader-only              what the loader alone takes
    python train.py --profile trace.json.gz    a Chrome trace of the first steps
    python train.py --show loss                nothing but the loss, for comparing

It runs on the GPU where there is one, else on the CPU. The records, their order and the weights at the start are the
same in every run, so the loss is, too, but for the rounding of ``--autocast`` and ``--compile``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from records import CLASSES, WIDTH, Records
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, RandomSampler


def main() -> None:
    """Train, and print one line of JSON."""
    given = _arguments()
    torch.manual_seed(0)
    torch.set_num_threads(given.threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    records = Records(given.records)
    if given.loader_only or given.show == "all":
        alone = _loader_pass(_loader(given, records))
    if given.loader_only:
        _print({"loader": alone, "rate": given.records / alone})
        return
    model = _model(given.hidden).to(device)
    step = torch.compile(model) if given.compile else model
    # A loader of its own, so that workers that persist are started in this pass, too.
    loader = _loader(given, records)
    # The first optimizer of a process imports a good part of PyTorch.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with _profiled(given, device) as profiler:
        times, losses = _train(step, optimizer, loader, given, device, profiler)
    if given.show == "loss":
        # A number alone, which may be compared with a tolerance.
        sys.stdout.write(f"{statistics.mean(losses[-10:]):.6f}\n")
        return
    whole = sum(times) / given.epochs
    steady = times[1:] or times
    _print(
        {
            "steps": steady,
            "first": times[0],
            "compile_time": max(0.0, times[0] - statistics.median(steady)),
            "rate": given.records / whole,
            "loader": alone,
            "epoch": whole,
            "dataloader_fraction": min(1.0, alone / whole),
            "loss": statistics.mean(losses[-10:]),
            "device": device.type,
            "torch": torch.__version__,
        }
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=768)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch itself")
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--pin-memory", action="store_true")
    parser.add_argument("--persistent-workers", action="store_true", help="without effect where there is no worker")
    parser.add_argument("--prefetch-factor", type=int, default=2, help="without effect where there is no worker")
    parser.add_argument("--autocast", action="store_true", help="bfloat16 where it will do")
    parser.add_argument("--compile", action="store_true", help="torch.compile; on a CPU it needs a C++ compiler")
    parser.add_argument("--loader-only", action="store_true")
    parser.add_argument("--profile", type=Path, metavar="TRACE", help="file.json or file.json.gz")
    parser.add_argument("--profile-steps", type=int, default=12)
    parser.add_argument("--show", choices=["all", "loss"], default="all")
    return parser.parse_args()


def _loader(given: argparse.Namespace, records: Records) -> DataLoader[tuple[torch.Tensor, int]]:
    workers: dict[str, Any] = {}
    if given.num_workers:
        workers = {"persistent_workers": given.persistent_workers, "prefetch_factor": given.prefetch_factor}
    return DataLoader(
        records,
        given.batch,
        # With a generator of its own the order does not depend on how often workers are started.
        sampler=RandomSampler(records, generator=torch.Generator().manual_seed(1)),
        num_workers=given.num_workers,
        # Without a GPU there is nothing to copy to, and PyTorch would only warn.
        pin_memory=given.pin_memory and torch.cuda.is_available(),
        **workers,
    )


def _loader_pass(loader: DataLoader[tuple[torch.Tensor, int]]) -> float:
    """Load every record once and use nothing of it; seconds."""
    began = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - began


def _model(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES)
    )


@contextmanager
def _profiled(given: argparse.Namespace, device: torch.device) -> Iterator[Any]:
    """Trace the first steps, the very first included, whose length tells what compiling took."""
    if not given.profile:
        yield None
        return
    given.profile.parent.mkdir(parents=True, exist_ok=True)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(
        activities=activities,
        # Every step more is some 50 KB of trace.
        schedule=schedule(wait=0, warmup=0, active=given.profile_steps, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(given.profile)),
        profile_memory=True,
    ) as profiler:
        yield profiler


def _train(
    step: Any,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[tuple[torch.Tensor, int]],
    given: argparse.Namespace,
    device: torch.device,
    profiler: Any,
) -> tuple[list[float], list[float]]:
    """Return the seconds of each step, loading included, and its loss."""
    times, losses = [], []
    for _ in range(given.epochs):
        began = time.perf_counter()
        for records, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            with record_function("forward"), torch.autocast(device.type, torch.bfloat16, enabled=given.autocast):
                numbers = records.to(device, non_blocking=given.pin_memory)
                loss = nn.functional.cross_entropy(step(numbers), labels.to(device, non_blocking=given.pin_memory))
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
            losses.append(loss.item())
            now = time.perf_counter()
            times.append(now - began)
            began = now
            if profiler:
                profiler.step()
    return times, losses


def _print(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
