"""Reports of `run`, each with its name before it; with `once` a single one without a name."""

from std.benchmark import Unit, keep, run
from std.sys import argv


def main() raises:
    var x = List[Float64](length=512, fill=1.5)

    def scale() {mut}:
        for i in range(len(x)):
            x[i] = x[i] * 1.0001
        keep(x[0])

    if len(argv()) > 1 and argv()[1] == "once":
        run(scale, max_runtime_secs=0.02, min_runtime_secs=0.01).print(Unit.us)
        return
    print("scale:")
    run(scale, max_runtime_secs=0.02, min_runtime_secs=0.01).print(Unit.ns)
    print("scale, all batches")
    run(scale, max_runtime_secs=0.02, min_runtime_secs=0.01).print_full(Unit.ms)
