"""Read files of BenchmarkDotNet's JSON exporter.

Format: ``BenchmarkDotNet.Exporters.Json``, as versions 0.9.9 to 0.15 write ``*-report-full.json`` (``-brief``,
``-compressed``). Times are in ns per operation, and each value is the mean of one iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field

from perfflow.tools.parsed_output import Figure, Json, Positives, Whole
from perfflow.tools.result_set import JsonFormat, ResultSet, StoredSummary, ValueCollector, facts, label

_NS = 1e-9


class _Statistics(Json):
    values: Positives = Field(default=[], alias="OriginalValues")
    number: Whole = Field(default=0, alias="N")
    mean: Figure | None = Field(default=None, alias="Mean")
    error: Figure | None = Field(default=None, alias="StandardError")


class _Memory(Json):
    allocated: Figure | None = Field(default=None, alias="BytesAllocatedPerOperation")


class _Measurement(Json):
    stage: str = Field(default="", alias="IterationStage")
    operations: Figure = Field(default=1.0, alias="Operations")


class _Benchmark(Json):
    """One benchmark with one set of parameters, in one job."""

    shown: str = Field(default="", alias="DisplayInfo")
    namespace: str | None = Field(default=None, alias="Namespace")
    type: str = Field(alias="Type")
    method: str = Field(alias="Method")
    parameters: str | None = Field(default="", alias="Parameters")
    full_name: str = Field(default="", alias="FullName")
    statistics: _Statistics | None = Field(default=None, alias="Statistics")
    memory: _Memory | None = Field(default=None, alias="Memory")
    measurements: list[_Measurement] = Field(default=[], alias="Measurements")

    @property
    def name(self) -> str:
        """The name without the namespace: ``Type.Method(N: 10)``."""
        given = f"({self.parameters})" if self.parameters else ""
        full = self.full_name or f"{self.type}.{self.method}{given}"
        return full.removeprefix(f"{self.namespace}.")

    @property
    def job(self) -> str:
        """The runtime and settings: ``.NET 8.0(Runtime=.NET 8.0)`` of ``Type.Method: JOB [N=10]``."""
        return self.shown.partition(": ")[2].rpartition(" [")[0] or self.shown.partition(": ")[2]


class _Report(Json):
    host: dict[str, object] = Field(alias="HostEnvironmentInfo")
    benchmarks: list[_Benchmark] = Field(alias="Benchmarks")


def _named(benchmarks: list[_Benchmark]) -> Iterator[tuple[str, _Benchmark]]:
    """Yield each benchmark with its name. Names that occur in several jobs get that of the job."""
    often = Counter(each.name for each in benchmarks)
    for each in benchmarks:
        yield f"{each.name} {each.job}" if often[each.name] > 1 else each.name, each


def _gather(report: _Report) -> ResultSet:
    samples = ValueCollector()
    for name, benchmark in _named(report.benchmarks):
        known = benchmark.statistics
        if samples.holds(name):
            samples.warnings.append(f"{label(name)} occurs more than once; its values were combined")
        if known is None or not (known.values or known.mean):
            samples.fail(name, "has no result: it failed, or was not run")
            continue
        if known.values:
            actual = (item.operations for item in benchmark.measurements if item.stage in ("Actual", "Result"))
            samples.add(name, "time", known.values, _NS, batch=max(actual, default=1.0))
        elif known.mean:
            error = (known.error or 0.0) * _NS
            samples.add_summary(name, "time", known.mean * _NS, StoredSummary(known.number, error))
        if benchmark.memory and benchmark.memory.allocated is not None:
            samples.add(name, "alloc", [benchmark.memory.allocated])
    cpu = "ProcessorName.Value" if isinstance(report.host.get("ProcessorName"), dict) else "ProcessorName"
    machine = facts(report.host, cpu=cpu, cpus="LogicalCoreCount", os="OsVersion", runtime="RuntimeVersion")
    return samples.result_set(FORMAT.tool, report.host.get("BenchmarkDotNetVersion"), machine)


FORMAT = JsonFormat(
    "benchmark-dotnet",
    "dotnet run -c Release -- --exporters json",
    lambda content: "HostEnvironmentInfo" in content and isinstance(content.get("Benchmarks"), list),
    _Report,
    _gather,
)
