"""A pytest class with the contract of adapters, for authors of adapters. See docs/how-to/writing-a-tool.md."""

from perfflow.testing.contract import AdapterContract, tool_of_file

__all__ = ["AdapterContract", "tool_of_file"]
