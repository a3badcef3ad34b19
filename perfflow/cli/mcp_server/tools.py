"""The tools of the server: their arguments, their ``perfflow`` commands, and their answers.

Clients show the docstrings and annotations of the tools to agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from perfflow.cli.mcp_server import answers
from perfflow.cli.mcp_server.answers import (
    Bisection,
    Hotspots,
    Judgement,
    Listing,
    PlanAnswer,
    RunAnswer,
    Tried,
    Validation,
)
from perfflow.cli.mcp_server.calls import Calls, Say
from perfflow.cli.mcp_server.limits import Scalar, SessionLimits, require_text, settings
from perfflow.jobs.judge.submit import Technique
from perfflow.model.result import Result

Workflow = Annotated[
    str, Field(description="Name of a workflow from list_workflows, or a workflow file of the project")
]
Params = Annotated[dict[str, Scalar] | None, Field(description="Values for parameters of the workflow")]
Budget = Annotated[str | None, Field(description="Longest time to measure, such as 30s or 5m; limited by the server")]
Resume = Annotated[
    str | None,
    Field(description="Id of an interrupted run of the same call, or `latest`. Finished steps are not repeated"),
]
RunId = Annotated[str, Field(description="Id of a run that another tool returned, or `latest`")]
Names = list[str] | None
_QUIET = ("--progress=plain", "--json")
_COMPARED = 20.0
"""Default budget of `perfflow compare`, in seconds."""


class Tools:
    """The tools of one session."""

    def __init__(self, limits: SessionLimits, calls: Calls) -> None:
        self._limits, self._calls = limits, calls

    async def list_workflows(self) -> Listing:
        """List the workflows that can be run by name here, and the tools that are installed. Runs no project code."""
        return Listing.model_validate(await self._calls.look(["list", "--json"]))

    async def plan(
        self, workflow: Workflow, params: Params = None, stages: Names = None, only: Names = None
    ) -> PlanAnswer:
        """Show the steps of a workflow in order, with their commands and what is missing. Runs no project code."""
        words = [*settings(params), *_each("stage", stages), *_each("only", only)]
        return PlanAnswer.model_validate(await self._plan(self._limits.workflow(workflow), words))

    async def validate(
        self,
        workflows: Annotated[Names, Field(description="Names or files (default: all in ./workflows)")] = None,
        params: Params = None,
    ) -> Validation:
        """Check workflow files: return every mistake with its line and a hint how to fix it. Runs no project code."""
        names = [self._limits.workflow(name) for name in workflows or ()]
        words = ["validate", "--format=json", *settings(params), "--", *names]
        return Validation.model_validate(await self._calls.look(words))

    async def run(
        self,
        workflow: Workflow,
        ctx: Context[Any, Any],
        params: Params = None,
        stages: Names = None,
        only: Annotated[Names, Field(description="Ids of the only steps to run")] = None,
        base: Annotated[
            str | None, Field(description="Compare the working tree with this revision, as `perfflow gate` does")
        ] = None,
        budget: Budget = None,
        resume: Resume = None,
    ) -> RunAnswer:
        """Run a workflow: build, measure, profile, check, judge. Only the verdict `pass` is a pass.

        If the call is cancelled, its samples are kept. Use `resume` to continue.
        """
        self._limits.require_run("run")
        if params:
            self._limits.require_commands("parameters of a workflow may contain commands")
        name = self._limits.workflow(workflow)
        words = [*settings(params), *_each("stage", stages), *_each("only", only), *_option("base", base)]
        return await self._run(name, words, ctx, budget, resume)

    async def compare(
        self,
        old: Annotated[str, Field(description="A command: program and arguments, or shell syntax")],
        new: Annotated[str, Field(description="The command to compare it with")],
        ctx: Context[Any, Any],
        budget: Budget = None,
        runs: Annotated[int | None, Field(ge=1, le=10**6, description="Measure exactly this many pairs")] = None,
        metric: Literal["auto", "time", "cpu", "uncontended"] = "auto",
    ) -> RunAnswer:
        """Compare two commands in pairs of fresh processes, until the difference is settled: at most 20 s by default.

        `old` is the baseline. `text` has the answer in words. `fail` means that `new` is slower by more than 10%.
        """
        self._limits.require_commands("compare runs two commands")
        for what, text in (("old", old), ("new", new)):
            require_text(what, text)
        allowed, note = self._limits.time(budget, _COMPARED)
        words = ["compare", "--json", f"--budget={allowed}", f"--metric={metric}", *_option("runs", runs)]
        return self._answer(await self._calls.measure([*words, "--", old, new], _progress_of(ctx)), note)

    async def judge_patch(
        self,
        workflow: Annotated[str, Field(description="Name or file of a workflow with an `optimize` stage")],
        patch: Annotated[str, Field(description="A unified diff against the working tree, such as `git diff` prints")],
        why: Annotated[
            str, Field(description="What the patch changes and why that is faster, in one line", max_length=500)
        ],
        ctx: Context[Any, Any],
        technique: Annotated[Technique, Field(description="The kind of change")] = "algorithm",
        budget: Budget = None,
        resume: Resume = None,
    ) -> Judgement:
        """Judge a patch as a candidate: apply it in a separate tree, build it, check it, and measure it in pairs.

        The patch is kept if all checks of the workflow pass, its whole confidence interval is beyond the threshold of
        the workflow (10% by default), and nothing else got worse. The working tree is not changed. A patch that is kept
        becomes a commit on a separate branch, for a human to merge.
        """
        self._limits.require_run("judge_patch")
        require_text("why", why.strip())
        name = self._limits.workflow(workflow)
        steps = (await self._plan(name, []))["steps"]
        answers.require_stage(name, await self._calls.look(["show", "--resolved", "--json", "--", name]))
        submitted = answers.submit(self._limits, name, steps, patch, " ".join(why.split()), technique)
        path = str(submitted.workflow.relative_to(self._limits.root))
        done = await self._run(path, _each("stage", submitted.stages), ctx, budget, resume)
        tried = next((item for item in done.optimizations if item.id == submitted.step), None)
        return _judgement(done, tried, str(submitted.patch))

    def hotspots(
        self,
        run: RunId = "latest",
        benchmark: Annotated[str, Field(description="Only hotspots of this benchmark")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        context: Annotated[int, Field(ge=0, le=50, description="Source lines before and after each hotspot")] = 5,
    ) -> Hotspots:
        """Show where a run spent time or allocated memory: function, share, and source lines. Runs no project code."""
        return answers.hotspots(self._limits, answers.folder_named(self._limits, run), benchmark, limit, context)

    async def bisect(
        self,
        workflow: Workflow,
        good: Annotated[str, Field(description="A revision without the regression")],
        ctx: Context[Any, Any],
        bad: Annotated[str, Field(description="A revision with the regression")] = "HEAD",
        only: Annotated[Names, Field(description="Ids of the only steps to measure")] = None,
        benchmark: Annotated[str, Field(description="The benchmark that regressed")] = "",
        metric: str = "",
        budget: Budget = None,
        resume: Resume = None,
    ) -> Bisection:
        """Find the commit that introduced a regression. Revisions are built and measured in separate trees."""
        self._limits.require_run("bisect")
        name = self._limits.workflow(workflow)
        require_text("good", good)
        require_text("bad", bad)
        allowed, _ = self._limits.time(budget)
        words = ["bisect", *_QUIET, f"--budget={allowed}", f"--good={good}", f"--bad={bad}", *_each("only", only)]
        words += [*_option("benchmark", benchmark), *_option("metric", metric), *self._resumed(resume)]
        answer = await self._calls.measure([*words, "--", name], _progress_of(ctx))
        return Bisection.model_validate(answer)

    def explain(self, run: RunId = "latest") -> RunAnswer:
        """Explain the verdict of a stored run: its reasons, failed steps and functions. Runs no project code."""
        folder = answers.folder_named(self._limits, run)
        return answers.run_answer(answers.result_of(folder), folder)

    async def _plan(self, workflow: str, words: Sequence[str]) -> Any:
        return await self._calls.look(["plan", "--format=json", *words, "--", workflow])

    async def _run(
        self, workflow: str, words: Sequence[str], ctx: Context[Any, Any], budget: str | None, resume: str | None
    ) -> RunAnswer:
        allowed, note = self._limits.time(budget)
        words = ["run", *_QUIET, f"--budget={allowed}", *words, *self._resumed(resume)]
        return self._answer(await self._calls.measure([*words, "--", workflow], _progress_of(ctx)), note)

    def _resumed(self, run: str | None) -> list[str]:
        return [] if run is None else [f"--resume={self._limits.run_name(run)}"]

    def _answer(self, data: Any, note: str) -> RunAnswer:
        result = Result.model_validate(data)
        return answers.run_answer(result, answers.folder_of(self._limits, result), [note] if note else [])


def _judgement(run: RunAnswer, tried: Tried | None, patch: str) -> Judgement:
    failed = [item for item in run.verification if item.status == "failed"]
    if tried is None or tried.decision == "skipped":
        decision, reason = "not judged", tried.reason if tried else "; ".join(run.reasons)
    elif tried.decision == "rejected":
        decision, reason = "rejected", tried.reason
    elif failed:
        decision, reason = "rejected", f"{failed[0].id}: {failed[0].detail}"
    else:
        decision, reason = "kept", tried.reason
    revision = tried.revision if tried and decision == "kept" else None
    return Judgement.model_validate(
        {
            "decision": decision,
            "reason": reason or "the run was interrupted",
            "tried": tried,
            "revision": revision,
            "branch": run.branch if revision else None,
            "patch_file": patch,
            "run": run,
        }
    )


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
