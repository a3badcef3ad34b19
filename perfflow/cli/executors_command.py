"""``perfflow executors``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from perfflow.cli.output import say, say_page
from perfflow.cli.style import style_of
from perfflow.jobs.cluster.slurm import CheckedExecutor, executors
from perfflow.model.errors import Exit
from perfflow.report.sanitize import visible, wrapped
from perfflow.report.table import Table, mark, name, table, words
from perfflow.report.text_table import laid_out


@click.command("executors")
@click.option("--json", "as_json", is_flag=True, help='Print {"executors": [...]}.')
def command(as_json: bool) -> int:
    """Check which machines can measure a run: this machine, and the nodes and queues of executors.yaml.

    The file is named by PERFFLOW_EXECUTORS, or it is perfflow/executors.yaml in the user's configuration folder.

    Exit: 0 all executors can be used, 2 the file is invalid, 3 an executor cannot be used.
    """
    found = list(executors())
    if as_json:
        say(json.dumps({"executors": [_entry(item) for item in found]}, ensure_ascii=False, indent=1))
    else:
        width = style_of(sys.stdout).width
        laid = laid_out(_table(found), width)
        say_page([laid.head, *(line for entry in laid.entries for line in entry), *_said(found, width)])
    return int(Exit.UNMEASURED if any(item.trouble for item in found) else Exit.PASS)


def _entry(item: CheckedExecutor) -> dict[str, Any]:
    return {
        "name": item.name,
        "engine": item.engine,
        "usable": not item.trouble,
        "trouble": item.trouble,
        "queue": vars(item.queue) if item.queue else None,
        "nodes": [{**vars(node), "labels": list(node.labels)} for node in item.nodes],
    }


def _table(found: Sequence[CheckedExecutor]) -> Table:
    columns = [name("Executor"), name("Node"), words("Labels"), mark("GPUs"), mark("State")]
    rows = (
        (item.name if number == 0 else "", node.name, ", ".join(node.labels), node.gpus or "none", node.state)
        for item in found
        for number, node in enumerate(item.nodes)
    )
    return table(columns, rows)


def _said(found: Sequence[CheckedExecutor], width: int) -> Iterator[str]:
    for item in found:
        if item.trouble:
            yield from wrapped(visible(f"{item.name} ({item.engine}) cannot be used: {item.trouble}"), width)
        elif item.queue:
            yield f"{item.name} ({item.engine}): {item.queue.waiting} jobs waiting, {item.queue.running} running"
