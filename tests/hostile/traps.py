"""Files that are something else than they seem, and settings and programs of a project that wait to be used."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.hostile.place import BENCH, SECRET, Place

HEAD = "perfflow: 1\n"
FLOW = "flow.yaml"
READING: tuple[tuple[str, ...], ...] = (
    ("validate", FLOW),
    ("plan", FLOW),
    ("show", FLOW),
    ("show", "--raw", FLOW),
    ("run", "-n", FLOW),
    ("make",),
)
LISTING = (*READING, ("validate",), ("list",))
"""`list` asks programs for their versions, which takes a while."""
ASKING: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("plan", FLOW),
    ("show", FLOW),
    ("run", "-n", FLOW),
    ("gate", "-n", "--base", "HEAD", FLOW),
    ("show", "perf"),
    ("validate", FLOW),
)
USES = (
    "stages:\n  baseline:\n    - {id: bench, uses: command, with: {command: 'true'}}\n"
    "  profile:\n    - {id: cpu, uses: perf, benchmark: bench}\n    - {id: heap, uses: massif, benchmark: bench}\n"
)


@dataclass(frozen=True)
class Trap:
    """What is to be run in the project, with which environment, and a text that one of the commands must say."""

    commands: tuple[tuple[str, ...], ...] = READING
    env: dict[str, str] = field(default_factory=dict)
    says: str = ""


OUTSIDE = Trap(says="lies outside the project")
LISTED = Trap(LISTING, says="lies outside the project")


def _in_workflows(place: Place, text: str) -> None:
    """The workflow under a path and under a name."""
    place.write(text)
    place.write(text.replace("../outside", "../../outside"), "workflows/named.yaml")


# -- what a workflow names


def extends_a_neighbour(place: Place) -> Trap:
    _in_workflows(place, HEAD + "extends: ../outside/secret.yaml\n")
    return LISTED


def extends_an_absolute_path(place: Place) -> Trap:
    _in_workflows(place, f"{HEAD}extends: {place.outside / 'secret.yaml'}\n")
    return OUTSIDE


def extends_what_is_no_yaml(place: Place) -> Trap:
    _in_workflows(place, f"{HEAD}extends: {place.outside / 'shadow'}\n")
    return OUTSIDE


def extends_the_environment(place: Place) -> Trap:
    _in_workflows(place, HEAD + "extends: /proc/self/environ\n")
    return LISTED


def extends_the_environment_by_a_link(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to("/proc/self/environ")
    _in_workflows(place, HEAD + "extends: base.yaml\n")
    return OUTSIDE


def extends_a_link(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to(place.outside / "secret.yaml")
    place.write(HEAD + "extends: base.yaml\n")
    return OUTSIDE


def extends_a_chain_of_links(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to("other.yaml")
    (place.project / "other.yaml").symlink_to("../outside/secret.yaml")
    place.write(HEAD + "extends: base.yaml\n")
    return OUTSIDE


def extends_through_a_linked_folder(place: Place) -> Trap:
    (place.project / "lib").symlink_to(place.outside)
    place.write(HEAD + "extends: lib/secret.yaml\n")
    return OUTSIDE


def extends_up_and_down(place: Place) -> Trap:
    (place.project / "deep").mkdir()
    place.write(HEAD + "extends: deep/../../outside/./secret.yaml\n")
    return OUTSIDE


def extends_what_is_not_there_outside(place: Place) -> Trap:
    place.write(HEAD + "extends: ../outside/secrets.yaml\n")
    return OUTSIDE


def extends_a_folder_outside(place: Place) -> Trap:
    place.write(HEAD + "extends: ../outside\n")
    return OUTSIDE


def extends_another_git_tree_by_a_link(place: Place) -> Trap:
    place.git("init", "-q", folder=place.outside)
    (place.project / "workflows").symlink_to(place.outside)
    place.write(HEAD + BENCH)
    return Trap((("validate", "workflows/secret.yaml"), *LISTING), says="lies outside the project")


def extends_a_pipe(place: Place) -> Trap:
    os.mkfifo(place.project / "base.yaml")
    place.write(HEAD + "extends: base.yaml\n")
    return Trap(says="is not a regular file")


def extends_endless_zeros(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to("/dev/zero")
    place.write(HEAD + "extends: base.yaml\n")
    return OUTSIDE


def extends_itself_by_a_link(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to("flow.yaml")
    place.write(HEAD + "extends: base.yaml\n")
    return Trap(says="circular `extends`")


def extends_a_link_to_itself(place: Place) -> Trap:
    (place.project / "base.yaml").symlink_to("base.yaml")
    place.write(HEAD + "extends: base.yaml\n")
    return Trap()


def extends_a_ring_of_files(place: Place) -> Trap:
    for number in range(40):
        place.write(f"{HEAD}extends: f{(number + 1) % 40}.yaml\n", f"f{number}.yaml")
    place.write(HEAD + "extends: f0.yaml\n")
    return Trap()


def uses_a_tool_file_outside(place: Place) -> Trap:
    text = f"stages: {{baseline: [{{id: bench, uses: {place.outside / 'tool.yaml'}}}]}}\n"
    _in_workflows(place, HEAD + text)
    return OUTSIDE


def uses_a_linked_tool_file(place: Place) -> Trap:
    (place.project / "tool.yaml").symlink_to(place.outside / "tool.yaml")
    place.write(HEAD + "stages: {baseline: [{id: bench, uses: ./tool.yaml}]}\n")
    return Trap((*READING, ("show", "tool.yaml"), ("show", "--tool", "tool.yaml")), says="lies outside the project")


def uses_a_pipe(place: Place) -> Trap:
    os.mkfifo(place.project / "tool.yaml")
    place.write(HEAD + "stages: {baseline: [{id: bench, uses: ./tool.yaml}]}\n")
    return Trap((*READING, ("show", "tool.yaml")), says="is not a regular file")


def patching(patch: str) -> str:
    candidate = f"  optimize:\n    - {{id: a, technique: memory, why: w, patch: {patch}}}\n"
    return f"{HEAD}{USES}{candidate}  verify:\n    - {{id: t, run: 'true'}}\n"


def patches_with_a_link(place: Place) -> Trap:
    (place.project / "a.patch").symlink_to(place.outside / "secret.patch")
    place.write(patching("a.patch"))
    place.repository()
    return Trap((("plan", FLOW), ("show", FLOW), ("run", "-n", FLOW)), says="lies outside the project")


def patches_with_a_pipe(place: Place) -> Trap:
    os.mkfifo(place.project / "a.patch")
    place.write(patching("a.patch"))
    return Trap((("plan", FLOW), ("show", FLOW), ("run", "-n", FLOW)), says="the patch a.patch does not exist")


def patches_with_what_is_nearly_called_so(place: Place) -> Trap:
    (place.outside / f"{SECRET}.patch").write_text("")
    place.write(patching(f"../outside/{SECRET[:-1]}.patch"))
    return Trap((("plan", FLOW), ("validate", FLOW)), says="does not exist")


def runs_a_pipe_under_a_profiler(place: Place) -> Trap:
    os.mkfifo(place.project / "fifo")
    steps = ", ".join(
        f"{{id: {tool}, uses: {tool}, with: {{command: ./fifo}}}}"
        for tool in ("py-spy", "cprofile", "heaptrack", "memray")
    )
    place.write(f"{HEAD}stages: {{profile: [{steps}]}}\n")
    return Trap((("plan", FLOW), ("show", FLOW)))


def declares_all_the_world_as_data(place: Place) -> Trap:
    os.mkfifo(place.project / "fifo")
    place.write(HEAD + BENCH + "data: [fifo, /dev/zero, /dev/random, '/**', '**/**/**/**/x', ../outside/*]\n")
    return Trap()


# -- what a workflow is


def is_a_link_to_a_secret(place: Place) -> Trap:
    (place.project / FLOW).symlink_to(place.outside / "secret.yaml")
    (place.project / "workflows").mkdir()
    (place.project / "workflows/named.yaml").symlink_to(place.outside / "shadow")
    return LISTED


def is_a_link_to_the_environment(place: Place) -> Trap:
    (place.project / FLOW).symlink_to("/proc/self/environ")
    return OUTSIDE


def is_a_pipe(place: Place) -> Trap:
    os.mkfifo(place.project / FLOW)
    (place.project / "workflows").mkdir()
    os.mkfifo(place.project / "workflows/named.yaml")
    return Trap((*LISTING, ("show", "named"), ("plan", "named"), ("show", "./flow.yaml")), says="is not a regular file")


def is_a_device(place: Place) -> Trap:
    (place.project / FLOW).symlink_to("/dev/zero")
    (place.project / "x").symlink_to("/dev/zero")
    return Trap((*LISTING, ("show", "./x"), ("show", "/dev/zero"), ("plan", "/dev/zero")), says="is not a regular file")


def is_a_folder(place: Place) -> Trap:
    (place.project / FLOW).mkdir()
    return Trap(says="is a directory")


def lies_in_a_linked_folder(place: Place) -> Trap:
    (place.project / "workflows").symlink_to(place.outside)
    place.write(HEAD + BENCH)
    return Trap((*LISTING, ("plan", "secret"), ("show", "workflows/secret.yaml")), says="lies outside the project")


def has_a_name_that_commands_a_terminal(place: Place) -> Trap:
    place.write(HEAD + BENCH + "x: 1\n", "workflows/a\x1b[31m\u202eb.yaml")
    place.write(HEAD + "extends: 'no\\x1b[2Jsuch.yaml'\n" + BENCH)
    return Trap((("validate",), ("list",), ("validate", FLOW), ("show", "a\x1b[31m\u202eb")))


def init_finds_links(place: Place) -> Trap:
    (place.project / "Makefile").symlink_to(place.outside / "shadow")
    (place.project / "Cargo.toml").symlink_to(place.outside / "shadow")
    os.mkfifo(place.project / "test_x.py")
    (place.project / "tests").symlink_to(place.outside)
    kinds = ("command", "cargo", "pytest-benchmark", "google-benchmark")
    return Trap((("init",), *(("init", "--kind", kind, "--name", kind) for kind in kinds), ("schema",)))


# -- git

TRIP = "{trip}"
_SETTINGS = """
[core]
    fsmonitor = {trip}
    hooksPath = {hooks}
    pager = {trip}
    editor = {trip}
    sshCommand = {trip}
    gitProxy = {trip}
    askPass = {trip}
    alternateRefsCommand = {trip}
[filter "own"]
    clean = {trip}
    smudge = {trip}
    process = {trip}
    required = true
[diff]
    external = {trip}
[diff "own"]
    textconv = {trip}
    command = {trip}
[merge "own"]
    driver = {trip}
[gpg]
    program = {trip}
[log]
    showSignature = true
[credential]
    helper = {trip}
[alias]
    status = !{trip}
    config = !{trip}
    rev-parse = !{trip}
[uploadpack]
    packObjectsHook = {trip}
[trailer "x"]
    command = {trip}
[submodule]
    recurse = true
"""


def _armed(place: Place) -> str:
    """A repository whose files git has to compare, and the settings that would start the tripwire."""
    place.write(HEAD + USES)
    place.write("* filter=own diff=own merge=own\n", ".gitattributes")
    place.write("one\n", "file")
    place.repository()
    place.write("two\n", "file")
    os.utime(place.project / FLOW, (1, 1))
    for hook in ("post-index-change", "pre-auto-gc", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        place.program(f".git/hooks/{hook}")
    trip = str(place.project / "trip")
    return _SETTINGS.replace("{trip}", trip).replace("{hooks}", str(place.project / ".git/hooks"))


def _configured(place: Place, text: str) -> None:
    with (place.project / ".git/config").open("a") as config:
        config.write(text)


def git_settings(place: Place) -> Trap:
    _configured(place, _armed(place))
    return Trap(ASKING)


def git_settings_that_are_included(place: Place) -> Trap:
    place.write(_armed(place), "settings")
    _configured(place, "[include]\n    path = ../settings\n")
    return Trap(ASKING)


def git_settings_of_a_working_tree(place: Place) -> Trap:
    place.write(_armed(place), ".git/config.worktree")
    _configured(place, "[extensions]\n    worktreeConfig = true\n")
    return Trap(ASKING)


def git_filters_with_odd_names(place: Place) -> Trap:
    _armed(place)
    trip = place.project / "trip"
    place.write("* filter=a=b\nflow.yaml filter=c.d\n", ".gitattributes")
    _configured(
        place, f'[filter "a=b"]\n    clean = {trip}\n    process = {trip}\n[filter "c.d"]\n    clean = {trip}\n'
    )
    return Trap(ASKING)


def git_attributes_in_the_repository(place: Place) -> Trap:
    _configured(place, _armed(place))
    place.write("* filter=own\n", ".git/info/attributes")
    return Trap(ASKING)


def git_attributes_from_a_pipe(place: Place) -> Trap:
    _armed(place)
    os.mkfifo(place.project / "attributes")
    _configured(place, f"[core]\n    attributesFile = {place.project / 'attributes'}\n")
    return Trap(ASKING)


def git_index_from_a_pipe(place: Place) -> Trap:
    _armed(place)
    (place.project / ".git/index").unlink()
    os.mkfifo(place.project / ".git/index")
    return Trap((("plan", FLOW),))


def git_tree_elsewhere(place: Place) -> Trap:
    _armed(place)
    _configured(place, f"[core]\n    worktree = {place.outside}\n")
    return Trap(ASKING)


def git_repository_of_tracked_files(place: Place) -> Trap:
    """The current folder looks like a bare repository to git, whose settings are files of the project."""
    place.write(HEAD + USES)
    place.git("init", "-q", "--bare", ".")
    _configured_bare = place.project / "config"
    _configured_bare.write_text(
        _configured_bare.read_text()
        + _SETTINGS.replace("{trip}", str(place.project / "trip")).replace("{hooks}", str(place.project))
    )
    return Trap(ASKING)


def git_folder_that_is_none_beside_a_bare_one(place: Place) -> Trap:
    git_repository_of_tracked_files(place)
    (place.project / ".git").mkdir()
    return Trap(ASKING)


def git_objects_to_be_fetched(place: Place) -> Trap:
    """A partial clone whose objects are fetched by a program that its settings name."""
    _armed(place)
    for name in ("file", FLOW):
        (place.project / name).touch()
    for folder in (place.project / ".git/objects").iterdir():
        if len(folder.name) == 2:
            for item in folder.iterdir():
                item.unlink()
    trip = place.project / "trip"
    _configured(
        place,
        "[core]\n    repositoryformatversion = 1\n[extensions]\n    partialClone = origin\n"
        '[protocol "ext"]\n    allow = always\n'
        f'[remote "origin"]\n    promisor = true\n    url = ext::{trip}\n    uploadpack = {trip}\n',
    )
    return Trap((*ASKING, ("gate", "-n", "--base", "0123456789012345678901234567890123456789", FLOW)))


def git_submodule_with_settings(place: Place) -> Trap:
    inner = place.around / "inner"
    inner.mkdir()
    (inner / "a").write_text("1\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        place.git(*words, folder=inner)
    place.write(HEAD + USES)
    place.git("init", "-q")
    place.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    place.git("add", "-A")
    place.git("commit", "-qm", "one")
    place.write("2\n", "sub/a")
    trip = str(place.project / "trip")
    with (place.project / ".git/modules/sub/config").open("a") as config:
        config.write(_SETTINGS.replace("{trip}", trip).replace("{hooks}", trip))
    place.write("* filter=own\n", "sub/.gitattributes")
    return Trap(ASKING)


# -- programs

_NAMES = (
    *("git", "perf", "valgrind", "hyperfine", "cargo", "rustc", "py-spy", "python3", "python", "env", "sh", "bash"),
    *("nvidia-smi", "nsys", "ncu", "strace", "memray", "heaptrack", "mojo", "g++", "nvcc", "asv", "pyperf", "iostat"),
)
_REQUIRING = (
    "stages:\n  baseline:\n    - {id: bench, uses: command, with: {command: 'true'}, requires: {gpu: 1, tool: TOOL}}\n"
)


def _programs(place: Place, folder: str) -> None:
    place.write(HEAD + USES)
    place.repository()
    for name in _NAMES:
        place.program(f"{folder}/{name}")


def path_with_a_relative_folder(place: Place) -> Trap:
    _programs(place, "bin")
    return Trap(ASKING, {"PATH": f"./bin:bin::{os.environ['PATH']}"}, says="not asked: lies in the project")


def path_with_a_folder_of_the_project(place: Place) -> Trap:
    _programs(place, "node_modules/.bin")
    path = f"{place.project / 'node_modules/.bin'}:{os.environ['PATH']}"
    return Trap(ASKING, {"PATH": path}, says="not asked: lies in the project")


def path_with_a_link_into_the_project(place: Place) -> Trap:
    _programs(place, ".venv/bin")
    (place.outside / "bin").symlink_to(place.project / ".venv/bin")
    path = f"{place.outside / 'bin'}:{os.environ['PATH']}"
    return Trap(ASKING, {"PATH": path}, says="not asked: lies in the project")


def path_of_a_step(place: Place) -> Trap:
    _programs(place, "bin")
    path = f"env: {{PATH: '{place.project}/bin:./bin'}}\n"
    place.write(HEAD + path + USES + _REQUIRING.replace("TOOL", "[perf>=1, valgrind>=1, git>=1]").partition("\n")[2])
    return Trap(ASKING)


def path_of_a_step_that_leads_elsewhere(place: Place) -> Trap:
    for name in ("perf", "nvidia-smi"):
        place.program(f"../elsewhere/{name}")
    place.write(f"{HEAD}env: {{PATH: '{place.around}/elsewhere'}}\n" + _REQUIRING.replace("TOOL", "['perf>=1']"))
    return Trap(ASKING)


def required_program_of_the_project(place: Place) -> Trap:
    place.write(HEAD + _REQUIRING.replace("TOOL", f"['./trip>=1', '{place.project}/trip>=1', '../project/trip>=1']"))
    return Trap(ASKING)


def tool_file_with_a_program_of_the_project(place: Place) -> Trap:
    place.write(
        "perfflow-tool: 1\nprogram: ./trip\nversion: [--version]\ninstall: none\nargv: [./trip]\n"
        "parse: {regex: '(?P<time>.)', units: {time: s}}\n",
        "tool.yaml",
    )
    place.write(HEAD + "stages: {baseline: [{id: bench, uses: ./tool.yaml}]}\n")
    return Trap((*ASKING, ("show", "tool.yaml")), says="not asked: lies in the project")


def tool_file_that_asks_a_shell(place: Place) -> Trap:
    place.write(
        f"perfflow-tool: 1\nprogram: sh\nversion: [-c, '{place.project}/trip']\ninstall: none\nargv: [sh]\n"
        "parse: {regex: '(?P<time>.)', units: {time: s}}\n",
        "tool.yaml",
    )
    place.write(HEAD + "stages: {baseline: [{id: bench, uses: ./tool.yaml}]}\n")
    return Trap((*ASKING, ("show", "tool.yaml")), says="`version` is more than --version")


def interpreter_settings(place: Place) -> Trap:
    _programs(place, "bin")
    trip = f"import pathlib; pathlib.Path({str(place.tripped)!r}).write_text('python')\n"
    for name in ("sitecustomize.py", "usercustomize.py", "click.py", "yaml.py", "json.py", "pydantic.py"):
        place.write(trip, name)
    place.write("[toolchain]\npath = './bin'\n", "rust-toolchain.toml")
    place.write(f"[build]\nrustc-wrapper = '{place.project}/trip'\n", ".cargo/config.toml")
    return Trap(ASKING)


# -- stored results


def stored_links(place: Place) -> Trap:
    runs = place.project / ".perfflow/runs"
    runs.mkdir(parents=True)
    (runs / "latest").symlink_to(place.outside)
    for name in ("result.json", "events.jsonl", "receipt.json", "bisect.json"):
        (place.outside / name).write_text(f'{{"{SECRET}": "{SECRET}"\n{SECRET}\n')
    (place.project / "a.json").symlink_to(place.outside / "result.json")
    return Trap(
        (
            *((verb, "latest") for verb in ("report", "export")),
            ("receipt", "verify", "latest"),
            ("compare", "a.json", "a.json"),
            ("compare", "latest", "latest"),
        )
    )


def stored_pipes(place: Place) -> Trap:
    folder = place.project / "run"
    folder.mkdir()
    (folder / "result.json").write_text("{}")
    for name in ("events.jsonl", "receipt.json", "bisect.json"):
        os.mkfifo(folder / name)
    os.mkfifo(place.project / "a.json")
    (place.project / "b.json").symlink_to("/dev/zero")
    (place.project / "target/criterion/x/new").mkdir(parents=True)
    for name in ("benchmark.json", "sample.json"):
        os.mkfifo(place.project / "target/criterion/x/new" / name)
    return Trap(
        (
            *((verb, "run") for verb in ("report", "export")),
            ("receipt", "verify", "run"),
            ("compare", "a.json", "a.json"),
            ("compare", "b.json", "b.json"),
            ("compare", "target/criterion", "target/criterion"),
        )
    )


def stored_depth(place: Place) -> Trap:
    deep = "[" * 500_000 + "]" * 500_000
    place.write(deep, "a.json")
    place.write(f'{{"schema": "perfflow.result/2", "run": {deep}}}', "run/result.json")
    place.write(f'{{"event": "run", "run": {deep}}}\n', "events/events.jsonl")
    return Trap(
        (
            ("compare", "a.json", "a.json"),
            ("compare", "run", "run"),
            ("report", "run"),
            ("report", "events"),
            ("export", "run"),
            ("receipt", "verify", "run"),
        )
    )


def stored_receipt_of_other_files(place: Place) -> Trap:
    names = {"../../outside/shadow": "0" * 64, "stdout": "0" * 64, "/etc/passwd": "0" * 64}
    data = {"../outside/shadow": "0" * 64, "/proc/kmsg": "0" * 64, "fifo": "0" * 64, "/dev/zero": "0" * 64}
    receipt = {"schema": "perfflow.receipt/1", "files": names, "data": data, "run": {"id": "x"}, "verdict": "pass"}
    place.write(json.dumps(receipt), "run/receipt.json")
    place.write("{}", "run/result.json")
    (place.project / "run/stdout").symlink_to(place.outside / "shadow")
    os.mkfifo(place.project / "fifo")
    return Trap((("receipt", "verify", "run"), ("report", "run"), ("export", "run")))


TRAPS: Mapping[str, Callable[[Place], Trap]] = {
    name.replace("_", " "): made
    for name, made in tuple(globals().items())
    if callable(made) and getattr(made, "__annotations__", {}).get("return") == "Trap" and name != "Trap"
}
