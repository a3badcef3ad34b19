import functools
import pyperf
import subject

runner = pyperf.Runner()
calls = []

async def awaited():
    subject.same(1)

@functools.lru_cache(None)
def cached(n):
    return subject.changed(n)

def rare():
    calls.append(1)
    return same_later() if len(calls) > 8 else 1

def same_later():
    return 1

def loops_itself(loops):
    for _ in range(loops):
        subject.same(1)
    return 1.0

def fails():
    raise LookupError("no such thing")

runner.bench_func("same", subject.same, 1)
runner.bench_func("changed", subject.changed, 1)
runner.bench_func("fills a cache", cached, 1)
runner.bench_func("reads the cache", cached, 1)
runner.timeit("text", "subject.same(1)", globals={"subject": subject})
runner.bench_async_func("awaited", awaited)
runner.bench_time_func("loops itself", loops_itself)
runner.bench_func("rare", rare)
runner.bench_command("program", ["true"])
runner.bench_func("fails", fails)
if runner.is_worker():
    runner.bench_func("of a worker", subject.same, 1)
