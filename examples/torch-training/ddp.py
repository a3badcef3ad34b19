"""Train on several ranks at once, processes of one machine that average their gradients by gloo, on the CPU.

    python ddp.py --ranks 2 [--trace 'trace-rank{rank}.json.gz'] [--balanced] [--bucket-mb 25]

Later records take longer to decode. Split into one block a rank, the last rank has the slow ones and all others wait
for it at every step; ``--balanced`` deals them out in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from records import CLASSES, WIDTH, Records
from torch import distributed, multiprocessing, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Subset

GROWTH = 3.0
"""How many times longer the last record takes than the first."""


def main() -> None:
    """Start the ranks, wait for all of them, and print what the first one found as one line of JSON."""
    given = _arguments()
    # Gloo would ask the network which of its addresses is this machine's.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    records = Records(given.records, GROWTH)
    with tempfile.TemporaryDirectory() as folder:
        # Forked, since imports and records take longer than the training, and PyTorch has run nothing yet.
        multiprocessing.start_processes(_rank, (given, records, folder), nprocs=given.ranks, start_method="fork")
        found = json.loads(Path(folder, "found.json").read_text())
    sys.stdout.write((f"{found['loss']:.6f}" if given.show == "loss" else json.dumps(found)) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--records", type=int, default=512, help="in all")
    parser.add_argument("--batch", type=int, default=16, help="of each rank")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--balanced", action="store_true")
    parser.add_argument("--bucket-mb", type=float, default=25.0, help="gradients sent at a time")
    parser.add_argument("--trace", default="", help="a file name with {rank}, .json or .json.gz")
    parser.add_argument("--trace-steps", type=int, default=8)
    parser.add_argument("--show", choices=["all", "loss"], default="all")
    return parser.parse_args()


def _rank(rank: int, given: argparse.Namespace, records: Records, folder: str) -> None:
    """One rank's training; the first one writes what it found."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    store = f"file://{folder}/store"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=given.ranks)
    loader = DataLoader(Subset(records, _share(rank, given)), given.batch)
    layers = (nn.Linear(WIDTH, given.hidden), nn.ReLU(), nn.Linear(given.hidden, CLASSES))
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=given.bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    times, losses = [], []
    with _profiled(rank, given) as profiler:
        distributed.barrier()
        start = began = time.perf_counter()
        for numbers, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(numbers), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            now = time.perf_counter()
            times.append(now - began)
            began = now
            if profiler:
                profiler.step()
        whole = time.perf_counter() - start
    last = torch.tensor(statistics.mean(losses[-4:]))
    distributed.all_reduce(last)
    if rank == 0:
        found = {
            "steps": times[1:] or times,
            "rate": given.records / whole,
            "loss": round(last.item() / given.ranks, 6),
            "ranks": given.ranks,
            "torch": torch.__version__,
        }
        Path(folder, "found.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


def _share(rank: int, given: argparse.Namespace) -> list[int]:
    """The records of a rank: every so manieth, or a block."""
    if given.balanced:
        return list(range(rank, given.records, given.ranks))
    block = given.records // given.ranks
    return list(range(rank * block, (rank + 1) * block))


def _profiled(rank: int, given: argparse.Namespace) -> Any:
    if not given.trace:
        return nullcontext()
    path = Path(given.trace.format(rank=rank))
    path.parent.mkdir(parents=True, exist_ok=True)
    return profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=given.trace_steps, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
    )


if __name__ == "__main__":
    main()
