from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestNvcc(AdapterContract):
    adapter = tool("nvcc")
    samples = "13.5/plain"
    captured = "."
    options = {"file": "crowded.cu"}
    failing_options = {"file": "none.cu"}
    captured_with = {"": {"file": "crowded.cu"}}
    stand_in = "/opt/cuda/bin/nvcc"
