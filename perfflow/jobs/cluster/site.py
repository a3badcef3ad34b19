"""The file ``executors.yaml`` of the user or of a site, which lists where jobs can go. It is not part of a workflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import yaml
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.model.units import UnitError, duration

VARIABLE = "PERFFLOW_EXECUTORS"
FILE = "executors.yaml"
LOCAL = "local"
"""The executor that always exists: this machine."""
Seconds = Annotated[str, Field(description="a duration such as 90s")]


class Site(BaseModel):
    """One executor of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))

    engine: Literal["slurm"]
    partition: str = ""
    account: str = ""
    qos: str = ""
    options: list[str] = Field(default_factory=list, description="further options of sbatch")
    exclude: list[str] = Field(default_factory=list, description="nodes that are not used")
    folder: str = Field("", description="for jobs; the nodes see it under the same path; default: the run's own")
    scratch: str = Field("", description="on each node's own disk; default: the user's cache folder")
    python: str = Field("", description="interpreter with perfflow on the nodes; default: the same path as here")
    trees: Literal["bundle", "path"] = Field("bundle", description="how the code gets to the nodes")
    group: tuple[str, str] = Field(("10m", "60m"), description="shortest and longest group")
    pending: str = Field("24h", description="longest time that a job waits in the queue")
    poll: str = Field("10s", description="how often the engine is asked")
    grace: str = Field("30s", description="how long files of a job that ended may take to be seen here")
    env: dict[str, str] = Field(default_factory=dict, description="environment of the engine's commands")

    def seconds(self, name: Literal["pending", "poll", "grace"]) -> float:
        """Return one of the durations in s."""
        return duration(str(getattr(self, name)))

    @property
    def lengths(self) -> tuple[float, float]:
        """The shortest and the longest group, in s."""
        least, most = map(duration, self.group)
        return least, most


def file() -> Path | None:
    """Return the file that PERFFLOW_EXECUTORS names, else the one in the user's configuration folder, else None."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)

    path = user_config_path("perfflow") / FILE
    return path if path.is_file() else None


def sites() -> dict[str, Site]:
    """Return the executors of the file by name; empty without a file. Raises UserError for a wrong file."""
    path = file()
    if path is None:
        return {}
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", f"correct {VARIABLE}, or unset it") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError.of(f"{path}: not YAML: {error}") from error
    named = data.get("executors") if isinstance(data, dict) else None
    if not isinstance(named, dict) or set(data) != {"executors"}:
        raise UserError.of(f"{path}: has no map `executors`", "executors: {lab: {engine: slurm, partition: bench}}")
    if LOCAL in named:
        raise UserError.of(f"{path}: `{LOCAL}` is this machine", "give the executor another name")
    return {str(name): _site(path, str(name), about) for name, about in named.items()}


def _site(path: Path, name: str, about: object) -> Site:
    try:
        found = Site.model_validate(about)
        for key in ("pending", "poll", "grace"):
            duration(str(getattr(found, key)))
        least, most = found.lengths
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        keys = ", ".join(field.alias or key for key, field in Site.model_fields.items())
        raise UserError.of(f"{path}: {name}.{where}: {problem['msg']}", f"keys: {keys}") from error
    except UnitError as error:
        raise UserError.of(f"{path}: {name}: {error}", "write a duration such as 90s or 24h") from error
    if not 0 < least <= most:
        raise UserError.of(f"{path}: {name}.group: the first duration must be the shorter one", "group: [10m, 60m]")
    return found


def site_of(name: str) -> Site | None:
    """Return the executor with a name, None for this machine. Raises UserError for an unknown name."""
    if name == LOCAL:
        return None
    known = sites()
    if name not in known:
        near = nearest(name, [LOCAL, *known])
        where = file()
        hint = f"did you mean {near}?" if near else f"executors: {', '.join([LOCAL, *known])}"
        there = f"in {where}" if where else f"there is no {FILE}; {VARIABLE} names one"
        raise UserError.of(f"no executor is called {name!r}", f"{hint} ({there})")
    return known[name]
