"""The contract that every adapter keeps, as a pytest class for those who write one: see docs/writing-a-tool.md."""

from perfflow.testing.contract import AdapterContract, tool_of_file

__all__ = ["AdapterContract", "tool_of_file"]
