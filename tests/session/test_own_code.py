"""Each tree runs its own Python code, with real virtual environments and real installs of the user's tree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.execute.loaded_code import UNSEEN
from perfflow.model.result import Result
from perfflow.session.own_code import SAME_CODE
from tests.repositories import git
from tests.session.project import Project, row, step

PARSE = "parse: {regex: 'cost (?P<cost>[\\d.]+)', units: {cost: '1'}, better: {cost: lower}}"
SETUPTOOLS = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "shop"
version = "1.0"
scripts = {shop-cost = "shop.price:main"}
"""
HATCHLING = SETUPTOOLS.replace('["setuptools"]', '["hatchling"]').replace("setuptools.build_meta", "hatchling.build")
PRICE = """
COST = %d
def main():
    print("cost", COST)
"""


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with build backends, available in every virtual environment of these tests."""
    folder = tmp_path_factory.mktemp("backends")
    pip("install", "--target", str(folder), "setuptools>=77", "hatchling", "editables")
    return folder


def pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *words]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.delenv(name, raising=False)
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", ".venv\n*.egg-info\nbuild\n.perfflow\nflow.yaml\n__pycache__\n")
    return project


def two_revisions(project: Project, *, home: str = "src", settings: str = SETUPTOOLS) -> None:
    """Base costs 100, head 120; the user's tree is at head, with a further edit that costs 500."""
    project.write("pyproject.toml", settings)
    project.write(f"{home}/shop/__init__.py", "")
    project.write("bench.py", "from shop import price\nprice.main()\n")
    for number, name in ((100, "main"), (120, "topic")):
        if name == "topic":
            git(project.folder, "checkout", "-qb", "topic")
        project.write(f"{home}/shop/price.py", PRICE % number)
        git(project.folder, "add", "-A")
        git(project.folder, "commit", "-qm", name)


def install(project: Project, backends: Path, *words: str) -> Path:
    """Install the project into a virtual environment in its folder; returns the interpreter there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.folder / ".venv"], check=True)
    own = project.folder / ".venv" / "bin" / "python"
    (site_of(own) / "backends.pth").write_text(f"{backends}\n")
    pip("--python", str(own), "install", "--no-build-isolation", "--no-deps", "--no-index", *words)
    return own


def gate(project: Project, run: str, *, head: str = "", more: str = "") -> Result:
    text = f"{head}\nstages:\n  baseline:\n    - {{id: one, run: '{run}', runs: 2, {more}{PARSE}}}\n"
    return project.run(text, base="main", head="topic")


def costs(result: Result) -> tuple[float | None, float | None]:
    found = row(result, "one", "cost")
    assert found.baseline is not None
    assert found.candidate is not None
    return found.baseline.value, found.candidate.value


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (SETUPTOOLS, ["-e", "."]),
        pytest.param(SETUPTOOLS, ["-e", ".", "--config-settings", "editable_mode=compat"], marks=pytest.mark.long),
        pytest.param(SETUPTOOLS, ["-e", ".", "--config-settings", "editable_mode=strict"], marks=pytest.mark.long),
        pytest.param(
            HATCHLING + '[tool.hatch.build.targets.wheel]\npackages = ["src/shop"]\n',
            ["-e", "."],
            marks=pytest.mark.long,
        ),
        pytest.param(HATCHLING + "[tool.hatch.build]\ndev-mode-exact = true\n", ["-e", "."], marks=pytest.mark.long),
    ],
    ids=["setuptools", "setuptools-compat", "setuptools-strict", "hatchling", "hatchling-exact"],
)
def test_an_editable_install_of_the_users_tree_stands_back(
    tree: Project, backends: Path, settings: str, options: list[str]
) -> None:
    two_revisions(tree, settings=settings)
    own = install(tree, backends, *options)
    for command in (f"{own} bench.py", str(own.with_name("shop-cost"))):
        assert costs(gate(tree, command)) == (100, 120)


@pytest.mark.parametrize(
    ("home", "settings"),
    [
        ("", ""),
        pytest.param("lib", '[tool.setuptools]\npackage-dir = {"" = "lib"}\n', marks=pytest.mark.long),
        pytest.param("python", '[tool.setuptools.packages.find]\nwhere = ["python"]\n', marks=pytest.mark.long),
    ],
)
def test_a_copy_in_the_environment_stands_back_wherever_the_package_lies(
    tree: Project, backends: Path, home: str, settings: str
) -> None:
    two_revisions(
        tree, home=home or ".", settings=SETUPTOOLS + (settings or '[tool.setuptools]\npackages = ["shop"]\n')
    )
    own = install(tree, backends, ".")
    assert costs(gate(tree, f"cd / && {own.with_name('shop-cost')}")) == (100, 120)


def refused(result: Result) -> str:
    assert result.verdict == "error"
    (reason,) = (item.reason for item in result.steps if item.id == "one")
    return reason


def test_a_copy_that_is_all_there_is_to_find_is_an_error(tree: Project, backends: Path) -> None:
    two_revisions(tree, home="hidden", settings=SETUPTOOLS)
    tree.write("setup.py", "import setuptools\nsetuptools.setup(packages=['shop'], package_dir={'': 'hid' + 'den'})\n")
    own = install(tree, backends, ".")
    said = refused(gate(tree, str(own.with_name("shop-cost"))))
    assert said.startswith("on base: an installed copy ran, not the tree's own code: shop from ")
    assert "env: {PYTHONPATH: ...}" in said
    assert costs(gate(tree, str(own.with_name("shop-cost")), more="env: {PYTHONPATH: hidden}, ")) == (100, 120)


FORK = """
import multiprocessing, os, sys
def child():
    sys.path[:0] = [{source!r}]
    from shop import price
    os._exit(0)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
print("cost", 1)
"""
SPAWNED = """
import subprocess, sys
print(subprocess.run([sys.executable, {script!r}], capture_output=True, text=True, check=True).stdout)
"""


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("import sys; sys.path[:0] = [{source!r}]; from shop import price; price.main()", "shop"),
        ("import runpy; runpy.run_path({script!r})", "bench.py"),
        (FORK, "shop"),
        (SPAWNED, "bench.py"),
    ],
    ids=["sys.path", "run_path", "forked child", "spawned child"],
)
def test_code_of_the_users_tree_is_an_error_with_module_path_and_remedy(
    tree: Project, program: str, module: str
) -> None:
    two_revisions(tree)
    stray = tree.folder.parent / "stray.py"
    stray.write_text(program.format(source=f"{tree.folder}/src", script=f"{tree.folder}/bench.py"))
    said = refused(gate(tree, f"{sys.executable} {stray}"))
    place = re.escape(f"on base: code of another tree ran: {module} from {tree.folder}/")
    assert re.match(rf"{place}\S+\.py[;,]", said), said
    assert "worktree: {share: [...]}" in said


UNREAD = """
import os, stat, sys, time
if stat.S_ISFIFO(os.fstat(1).st_mode):
    time.sleep(60)
sys.path[:0] = [{source!r}]
from shop import price
"""


def test_a_run_repeated_after_a_timeout_is_checked_as_well(tree: Project) -> None:
    two_revisions(tree)
    stray = tree.folder.parent / "stray.py"
    stray.write_text(UNREAD.format(source=f"{tree.folder}/src"))
    one = f"{{id: one, uses: command, runs: 2, timeout: 2s, with: {{command: '{sys.executable} {stray}'}}}}"
    said = refused(tree.run(f"stages: {{baseline: [{one}]}}\n", base="main", head="topic"))
    assert said.startswith(f"on base: code of another tree ran: shop from {tree.folder}/")


def site_of(own: Path) -> Path:
    (site,) = own.parent.parent.glob("lib/python*/site-packages")
    return site


FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "shop":
            places = [{home!r}]
            return importlib.util.spec_from_file_location(name, places[0] + "/__init__.py",
                                                          submodule_search_locations=places)
sys.meta_path.insert(0, Finder)
"""


def test_an_import_hook_that_comes_before_the_path_is_an_error(tree: Project, backends: Path) -> None:
    two_revisions(tree)
    own = install(tree, backends, "-e", ".")
    site = site_of(own)
    # As scikit-build-core and meson-python install a project: their import hooks take precedence.
    (site / "first.py").write_text(FINDER.format(home=f"{tree.folder}/src/shop"))
    (site / "first.pth").write_text("import first\n")
    said = refused(gate(tree, str(own.with_name("shop-cost"))))
    assert f"shop from {tree.folder}/src/shop/__init__.py, shop.price from {tree.folder}/src/shop/price.py" in said


EXTENSION = """
#define Py_LIMITED_API 0x03080000
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", 0, -1, 0};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_an_extension_built_in_the_users_tree_is_an_error(tree: Project, backends: Path) -> None:
    tree.write(".gitignore", (tree.folder / ".gitignore").read_text() + "*.so\n")
    tree.write("fast.c", EXTENSION)
    module = 'setuptools.Extension("fast", ["fast.c"], py_limited_api=True)'
    tree.write("setup.py", f"import setuptools\nsetuptools.setup(ext_modules=[{module}])\n")
    tree.write("bench.py", "import fast\nprint('cost', 1)\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "main")
    git(tree.folder, "checkout", "-qb", "topic")
    # An older pip would run setup.py itself, which requires pip in the environment.
    own = install(tree, backends, "-e", ".", "--use-pep517", "--config-settings", "editable_mode=compat")
    (built,) = tree.folder.glob("fast*.so")
    said = refused(gate(tree, f"{own} bench.py"))
    assert said.startswith(f"on base: code of another tree ran: fast from {built}; ")


def test_a_suite_that_imports_the_users_tree_is_an_error(tree: Project) -> None:
    two_revisions(tree)
    suite = "def test_price(benchmark):\n    from shop import price\n    benchmark(int)\n"
    tree.write("test_shop.py", suite)
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "suite")
    git(tree.folder, "branch", "-qf", "main", "topic")
    tree.write("test_shop.py", f"import sys\nsys.path.insert(0, {str(tree.folder / 'src')!r})\n{suite}")
    with_ = "{paths: test_shop.py, args: -p pytest_benchmark.plugin --benchmark-max-time=0.001}"
    alone = '{PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}'
    text = f"stages:\n  baseline:\n    - {{id: one, uses: pytest-benchmark, with: {with_}, env: {alone}, runs: 1}}\n"
    assert "shop from" not in step(tree.run(text, base="main", head="topic"), "one").reason
    said = refused(tree.run(text, base="main"))
    assert "on head: code of another tree ran: shop from" in said


def test_the_programs_own_sitecustomize_runs_as_ever(tree: Project) -> None:
    two_revisions(tree)
    tree.write("sitecustomize.py", "import sys\nsys.mine = (__name__, __file__, __spec__.name)\n")
    tree.write("bench.py", "import sys, sitecustomize\nassert sys.mine[1] == sitecustomize.__file__\nprint('cost 1')\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "custom")
    git(tree.folder, "branch", "-qf", "main", "topic")
    result = gate(tree, f"{sys.executable} bench.py")
    assert costs(result) == (1, 1)
    assert SAME_CODE in step(result, "one").warnings


def test_a_path_set_in_the_command_itself_is_an_error(tree: Project) -> None:
    two_revisions(tree)
    said = refused(gate(tree, f"PYTHONPATH={tree.folder}/src {sys.executable} bench.py"))
    assert f"price from {tree.folder}/src/shop/price.py" in said
    assert costs(gate(tree, f"PYTHONPATH=src {sys.executable} bench.py")) == (100, 120)


def test_a_candidates_check_that_tests_the_users_tree_fails(tree: Project) -> None:
    two_revisions(tree)
    text = f"""
stages:
  verify:
    - {{id: test, run: "PYTHONPATH={tree.folder}/src {sys.executable} bench.py"}}
"""
    result = tree.run(text, base="main", head="topic")
    assert step(result, "test").status == "failed"
    assert f"price from {tree.folder}/src/shop/price.py" in step(result, "test").reason


def test_what_the_workflow_puts_on_the_path_comes_after_the_tree(tree: Project) -> None:
    two_revisions(tree)
    stray = tree.folder.parent / "stray" / "shop"
    stray.mkdir(parents=True)
    (stray / "__init__.py").write_text("")
    (stray / "price.py").write_text(PRICE % 7)
    for value in (str(stray.parent), f"{tree.folder}/src", "src"):
        assert costs(gate(tree, f"{sys.executable} bench.py", more=f"env: {{PYTHONPATH: '{value}'}}, ")) == (100, 120)


def test_what_is_shared_may_be_loaded(tree: Project) -> None:
    two_revisions(tree)
    tree.write(".gitignore", (tree.folder / ".gitignore").read_text() + "rigs\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "ignore")
    git(tree.folder, "branch", "-qf", "main", "topic")
    tree.write("rigs/rig.py", "from shop import price\nprice.main()\n")
    head = "worktree: {share: [rigs]}"
    assert costs(gate(tree, f"{sys.executable} rigs/rig.py", head=head)) == (120, 120)


def test_both_sides_running_the_same_code_is_said(tree: Project) -> None:
    two_revisions(tree)
    tree.write("other.py", "print('cost', 3)\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "other")
    git(tree.folder, "branch", "-qf", "main", "topic~1")
    git(tree.folder, "checkout", "-q", "main")
    git(tree.folder, "checkout", "-q", "topic")
    same = gate(tree, f"{sys.executable} bench.py")
    assert SAME_CODE in step(same, "one").warnings
    git(tree.folder, "branch", "-qf", "main", "topic~2")
    changed = gate(tree, f"{sys.executable} bench.py")
    assert SAME_CODE not in step(changed, "one").warnings


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_ignores_the_path_is_told_of(tree: Project, flag: str) -> None:
    two_revisions(tree)
    tree.write("alone.py", "print('cost', 3)\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "alone")
    git(tree.folder, "branch", "-qf", "main", "topic")
    text = f"stages:\n  baseline:\n    - {{id: one, argv: [{sys.executable}, {flag}, alone.py], runs: 3, {PARSE}}}\n"
    warnings = step(tree.run(text, base="main", head="topic"), "one").warnings
    assert UNSEEN in warnings


def test_a_candidate_is_measured_and_checked_by_its_own_code(tree: Project, backends: Path) -> None:
    two_revisions(tree)
    own = install(tree, backends, "-e", ".")
    tree.write("check.py", "import os\nfrom shop import price\nassert price.__file__.startswith(os.getcwd())\n")
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "check")
    text = f"""
targets: {{one: {{cost: <60}}}}
stages:
  baseline:
    - {{id: one, run: "{own} bench.py", runs: 8, {PARSE}}}
  profile:
    - {{id: cpu, run: "true"}}
  optimize:
    objective: one cost
    steps:
      - {{id: half, technique: algorithm, why: half the price, run: "sed -i s/120/50/ src/shop/price.py"}}
  verify:
    - {{id: check, run: "{own} check.py"}}
"""
    result = tree.run(text)
    assert [(item.id, item.decision) for item in result.optimizations] == [("half", "accepted")]
    assert [item.reason for item in result.steps if item.status == "failed"] == []
