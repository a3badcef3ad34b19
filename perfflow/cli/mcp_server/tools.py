"""The tools of the server: their arguments, their ``perfflow`` commands, and their answers.

Clients put the docstrings and annotations of the tools into each request to a language model, so they are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from perfflow.cli.mcp_server import answers
from perfflow.cli.mcp_server.calls import Calls, Say
from perfflow.cli.mcp_server.limits import Scalar, SessionLimits, require_text, settings
from perfflow.jobs.judge.submit import Technique
from perfflow.jobs.start.write_starter import write
from perfflow.library import starter_for
from perfflow.model.errors import UserError
from perfflow.model.result import Result

Workflow = Annotated[str, Field(description="name or file")]
Budget = Annotated[str | None, Field(description="longest time, such as 90s")]
Resume = Annotated[str | None, Field(description="interrupted run to continue, or latest")]
RunId = Annotated[str, Field(description="id of a run")]
Detail = Annotated[bool, Field(description="answer with everything")]
Names = list[str] | None
_QUIET = ("--progress=plain", "--json")
_COMPARED = 20.0
"""Default budget of `perfflow compare`, in seconds."""


class Tools:
    """The tools of one session. Each returns its answer as JSON."""

    def __init__(self, limits: SessionLimits, calls: Calls) -> None:
        self._limits, self._calls = limits, calls

    async def look(
        self,
        workflow: Annotated[str, Field(description="name or file; leave out to list all")] = "",
        detail: Detail = False,
    ) -> str:
        """List workflows and tools, or check one workflow: its mistakes, steps and commands. Runs nothing."""
        if not workflow:
            return answers.sent(
                answers.listing(await self._calls.look(["list", "--json"]), detail=detail), detail=detail
            )
        name = self._limits.workflow(workflow)
        checked = await self._calls.look(["validate", "--format=json", "--", name])
        plan, note = None, ""
        if checked["files"][0]["valid"]:
            try:
                plan = await self._plan(name)
            except UserError as error:
                note = str(error)  # such as a parameter that must be given
        return answers.sent(answers.checked(checked, plan, note, detail=detail), detail=detail)

    def start(
        self,
        command: Annotated[
            str, Field(description="program to make faster; prints its result, runs 0.1 s or longer; default: detect")
        ] = "",
        name: Annotated[str, Field(description="of the workflow")] = "",
    ) -> str:
        """Write a first workflow for this project into workflows/. It measures, profiles and judges patches."""
        self._limits.require_run("start")
        program = self._limits.program(command) if command else ""
        root = self._limits.root
        begun = starter_for.start(root, root, kind=None, command=program, name=name, patches=True)
        try:
            path = write(begun, root)
        except OSError as error:
            raise UserError.of(
                f"cannot write {error.filename}: {error.strerror}", "make the folder writable"
            ) from error
        file, then = str(path.relative_to(root)), "run, hotspots, judge_patch"
        return answers.sent(
            {"workflow": begun.name, "file": file, "about": begun.about, "note": begun.note, "next": then}
        )

    async def run(
        self,
        workflow: Workflow,
        ctx: Context[Any, Any],
        params: dict[str, Scalar] | None = None,
        stages: Names = None,
        only: Annotated[Names, Field(description="ids of steps")] = None,
        base: Annotated[str | None, Field(description="revision to compare the working tree with")] = None,
        budget: Budget = None,
        resume: Resume = None,
        detail: Detail = False,
    ) -> str:
        """Run a workflow: build, measure, profile, check, judge. Only the verdict `pass` is a pass."""
        self._limits.require_run("run")
        if params:
            self._limits.require_commands("parameters of a workflow may contain commands")
        name = self._limits.workflow(workflow)
        words = [*settings(params), *_each("stage", stages), *_each("only", only), *_option("base", base)]
        result, folder, notes = await self._run(name, words, ctx, budget, resume)
        return answers.sent(answers.run_answer(result, folder, notes, detail=detail), detail=detail)

    async def compare(
        self,
        old: Annotated[str, Field(description="shell command")],
        new: str,
        ctx: Context[Any, Any],
        budget: Budget = None,
        runs: Annotated[int | None, Field(ge=1, le=10**6, description="exact number of pairs")] = None,
        metric: Literal["auto", "time", "cpu", "uncontended"] = "auto",
        detail: Detail = False,
    ) -> str:
        """Compare two commands in pairs of processes until the difference is settled, for at most 20 s by default."""
        self._limits.require_commands("compare runs two commands")
        for what, text in (("old", old), ("new", new)):
            require_text(what, text)
        allowed, note = self._limits.time(budget, _COMPARED)
        words = ["compare", "--json", f"--budget={allowed}", f"--metric={metric}", *_option("runs", runs)]
        data = await self._calls.measure([*words, "--", old, new], _progress_of(ctx))
        result, folder, notes = self._ended(data, note)
        return answers.sent(answers.run_answer(result, folder, notes, detail=detail), detail=detail)

    async def judge_patch(
        self,
        workflow: Workflow,
        patch: Annotated[str, Field(description="unified diff against the working tree, as of `git diff`")],
        why: Annotated[str, Field(description="what it changes, and why that is faster", max_length=500)],
        ctx: Context[Any, Any],
        technique: Technique = "algorithm",
        budget: Budget = None,
        resume: Resume = None,
        detail: Detail = False,
    ) -> str:
        """Judge a patch in a sandbox: apply, build, check, and measure it in pairs with the unpatched program.

        Decisions: kept, no-gain, harmful, incorrect, forbidden, cannot-judge, undecided (`needs`: what would decide).
        The working tree stays as it is. A kept patch is a commit on `branch`, for a human to merge.
        """
        self._limits.require_run("judge_patch")
        require_text("why", why.strip())
        name = self._limits.workflow(workflow)
        steps = (await self._plan(name))["steps"]
        resolved = await self._calls.look(["show", "--resolved", "--json", "--", name])
        untrusted = answers.settings_for_strangers(name, resolved)
        submitted = answers.submit(self._limits, name, steps, patch, " ".join(why.split()), technique, untrusted)
        path = str(submitted.workflow.relative_to(self._limits.root))
        result, folder, notes = await self._run(path, _each("stage", submitted.stages), ctx, budget, resume)
        found = answers.judgement(result, folder, submitted.step, submitted.patch, notes, detail=detail)
        return answers.sent(found, detail=detail)

    def hotspots(
        self,
        run: RunId = "latest",
        benchmark: str = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 6,
        context: Annotated[int, Field(ge=0, le=50, description="source lines around each")] = 2,
        detail: Detail = False,
    ) -> str:
        """Show the functions of a run that cost most with all that they call, their own share, and source lines."""
        folder = answers.folder_named(self._limits, run)
        return answers.sent(answers.hotspots(self._limits, folder, benchmark, limit, context), detail=detail)

    async def bisect(
        self,
        workflow: Workflow,
        good: Annotated[str, Field(description="revision without the regression")],
        ctx: Context[Any, Any],
        bad: str = "HEAD",
        only: Annotated[Names, Field(description="ids of steps")] = None,
        benchmark: str = "",
        metric: str = "",
        budget: Budget = None,
        resume: Resume = None,
        detail: Detail = False,
    ) -> str:
        """Find the commit that introduced a regression."""
        self._limits.require_run("bisect")
        name = self._limits.workflow(workflow)
        require_text("good", good)
        require_text("bad", bad)
        allowed, _ = self._limits.time(budget)
        words = ["bisect", *_QUIET, f"--budget={allowed}", f"--good={good}", f"--bad={bad}", *_each("only", only)]
        words += [*_option("benchmark", benchmark), *_option("metric", metric), *self._resumed(resume)]
        answer = await self._calls.measure([*words, "--", name], _progress_of(ctx))
        return answers.sent(answers.bisection(answer, detail=detail), detail=detail)

    def explain(self, run: RunId = "latest", detail: Detail = False) -> str:
        """Show the verdict of a stored run: reasons, figures, failures."""
        folder = answers.folder_named(self._limits, run)
        return answers.sent(answers.run_answer(answers.result_of(folder), folder, detail=detail), detail=detail)

    async def _plan(self, workflow: str) -> Any:
        return await self._calls.look(["plan", "--format=json", "--", workflow])

    async def _run(
        self, workflow: str, words: Sequence[str], ctx: Context[Any, Any], budget: str | None, resume: str | None
    ) -> tuple[Result, Path, list[str]]:
        """Run a workflow. Return its result, its folder, and remarks about the call."""
        allowed, note = self._limits.time(budget)
        words = ["run", *_QUIET, f"--budget={allowed}", *words, *self._resumed(resume)]
        return self._ended(await self._calls.measure([*words, "--", workflow], _progress_of(ctx)), note)

    def _resumed(self, run: str | None) -> list[str]:
        return [] if run is None else [f"--resume={self._limits.run_name(run)}"]

    def _ended(self, data: Any, note: str) -> tuple[Result, Path, list[str]]:
        result = Result.model_validate(data)
        return result, answers.folder_of(self._limits, result), [note] if note else []


def _each(option: str, values: Sequence[str] | None) -> list[str]:
    for value in values or ():
        require_text(option, value)
    return [f"--{option}={value}" for value in values or ()]


def _option(option: str, value: str | int | None) -> list[str]:
    if value in (None, ""):
        return []
    require_text(option, str(value))
    return [f"--{option}={value}"]


def _progress_of(ctx: Context[Any, Any]) -> Say:
    """Return a function that reports lines as progress, without a total number."""
    told = 0

    async def say(line: str) -> None:
        nonlocal told
        told += 1
        await ctx.report_progress(told, None, line)

    return say
