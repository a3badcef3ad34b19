"""Three tiny steps under torch.profiler: ``python torch_loop.py TRACE [--no-schedule]``."""

import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader

cycle = None if "--no-schedule" in sys.argv else schedule(wait=0, warmup=0, active=3, repeat=1)
weights = torch.ones(64, 64)
with profile(activities=[ProfilerActivity.CPU], schedule=cycle) as profiler:
    for batch in DataLoader([weights * number for number in range(3)], batch_size=None):
        with record_function("forward"):
            product = weights @ batch
        if cycle:
            profiler.step()
profiler.export_chrome_trace(sys.argv[1])
