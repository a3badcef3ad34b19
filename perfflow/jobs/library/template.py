"""Write a first repository for the workflows of a team: one workflow, its test, and a README."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.errors import UserError

FILES = {
    "workflows/command.yaml": """\
perfflow: 1
name: command
description: How long does a command take, how much memory, and does it print the same every time?

# A project's own file: perfflow: 1, extends: git+https://HOST/OWNER/REPO@v1#workflows/command.yaml, and its params.
params:
  command: {type: string, help: "the program and its arguments"}

thresholds: {concern: 5%, action: 10%}

stages:
  baseline:
    - id: program
      uses: command
      with: {command: "${{ params.command }}"}
  verify:
    - id: repeatable
      uses: same-output
      benchmark: program
      with: {runs: 2}
""",
    "tests/command.yaml": """\
# `perfflow library test` runs the workflow with these parameters, and checks these results.
perfflow-test: 1
workflow: workflows/command.yaml
set: {command: "echo hello"}
budget: 60s
exit: 0
steps: [program, repeatable]
benchmarks: [program]
""",
    "README.md": """\
# Workflows of our team

Projects use a workflow by its address and a tag:

    # workflows/latency.yaml of a project
    perfflow: 1
    extends: git+https://HOST/OWNER/REPO@v1#workflows/command.yaml
    name: latency
    params: {command: ./serve --requests 1000}

and pin it once, which writes `perfflow.lock`, a file to be committed:

    perfflow library add git+https://HOST/OWNER/REPO@v1#workflows/command.yaml

`perfflow library update` pins the newest commit of a branch. A tag that was moved is reported.

## To change something here

1. Edit `workflows/`, and add a test to `tests/` for each new workflow.
2. Run `perfflow library test`.
3. Commit, and tag the version that projects should use: `git tag v2`. Do not move old tags.
""",
}


def write(folder: Path) -> list[Path]:
    """Write the files into a new or empty folder. Raises UserError if the folder is not empty."""
    try:
        if folder.is_symlink() or (folder.exists() and any(folder.iterdir())):
            raise UserError.of(f"{folder} is not empty", "name a new folder")
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError.of(f"{folder} cannot be written: {error.strerror}", "name another folder") from error
    return [folder / name for name in FILES]
