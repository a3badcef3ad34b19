from perfflow.testing import AdapterContract
from perfflow.tools.nvidia.ncu import short_names
from tests.mutate import ncu_reader
from tests.tools.harness import tool


class TestNcu(AdapterContract):
    adapter = tool("ncu")
    samples = "2022.3.0/selected"
    captured = "."
    command = ["/bin/true"]
    ends = False
    readers = (ncu_reader.ncu_pages,)
    stand_in = "/usr/bin/ncu"

    @staticmethod
    def shown(name: str) -> str:
        return short_names([name])[name]  # No case has two kernels with the same short name.
