from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestComputeSanitizer(AdapterContract):
    adapter = tool("compute-sanitizer")
    samples = "2026.4-documentation/clean"
    captured = "."
    command = ["/bin/true"]
    captured_with = {"races": {"check": "racecheck"}, "race-warnings": {"check": "racecheck"}, "leaks": {"leaks": True}}
    stand_in = "/opt/cuda/bin/compute-sanitizer"
