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
from tests.long import rest_long
from tests.session.project import Project, both, flow, row, step

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
def tree(tree: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.delenv(name, raising=False)
    tree.write(".gitignore", ".venv\n*.egg-info\nbuild\nrigs\n.perfflow\nflow.yaml\n__pycache__\n")
    return tree


def two_revisions(project: Project, *, home: str = "src", settings: str = SETUPTOOLS) -> None:
    """Base costs 100, head 120."""
    bench = "from shop import price\nprice.main()\n"
    files = {"pyproject.toml": settings, f"{home}/shop/__init__.py": "", "bench.py": bench}
    project.commit({**files, f"{home}/shop/price.py": PRICE % 100})
    project.branch({f"{home}/shop/price.py": PRICE % 120})


def both_at(project: Project, files: dict[str, str]) -> None:
    """Commit files to the topic, and let ``main`` be the same."""
    project.commit(files)
    project.git("branch", "-qf", "main", "topic")


def install(project: Project, backends: Path, *words: str) -> Path:
    """Install the project into a virtual environment in its folder; returns the interpreter there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.folder / ".venv"], check=True)
    own = project.folder / ".venv" / "bin" / "python"
    (site_of(own) / "backends.pth").write_text(f"{backends}\n")
    pip("--python", str(own), "install", "--no-build-isolation", "--no-deps", "--no-index", *words)
    return own


def gate(project: Project, run: str, *, head: str = "", more: str = "") -> Result:
    text = flow(head, baseline=f"{{id: one, run: '{run}', runs: 2, {more}{PARSE}}}")
    return project.run(text, base="main", head="topic")


def costs(result: Result) -> tuple[float | None, ...]:
    return tuple(side.value for side in both(row(result, "one", "cost")))


EXACT = HATCHLING + "[tool.hatch.build]\ndev-mode-exact = true\n"
WHEEL = HATCHLING + '[tool.hatch.build.targets.wheel]\npackages = ["src/shop"]\n'


@pytest.mark.long  # installs a package
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (SETUPTOOLS, []),
        pytest.param(SETUPTOOLS, ["--config-settings", "editable_mode=compat"], marks=pytest.mark.long),
        pytest.param(SETUPTOOLS, ["--config-settings", "editable_mode=strict"], marks=pytest.mark.long),
        pytest.param(WHEEL, [], marks=pytest.mark.long),
        pytest.param(EXACT, [], marks=pytest.mark.long),
    ],
    ids=["setuptools", "setuptools-compat", "setuptools-strict", "hatchling", "hatchling-exact"],
)
def test_an_editable_install_of_the_users_tree_stands_back(
    tree: Project, backends: Path, settings: str, options: list[str]
) -> None:
    two_revisions(tree, settings=settings)
    own = install(tree, backends, "-e", ".", *options)
    for command in (f"{own} bench.py", str(own.with_name("shop-cost"))):
        assert costs(gate(tree, command)) == (100, 120)


@pytest.mark.parametrize(
    ("home", "settings"),
    [
        (".", 'packages = ["shop"]\n'),
        pytest.param("lib", 'package-dir = {"" = "lib"}\n', marks=pytest.mark.long),
        pytest.param("python", 'packages.find.where = ["python"]\n', marks=pytest.mark.long),
    ],
)
def test_a_copy_in_the_environment_stands_back_wherever_the_package_lies(
    tree: Project, backends: Path, home: str, settings: str
) -> None:
    two_revisions(tree, home=home, settings=f"{SETUPTOOLS}[tool.setuptools]\n{settings}")
    own = install(tree, backends, ".")
    assert costs(gate(tree, f"cd / && {own.with_name('shop-cost')}")) == (100, 120)


def refused(result: Result) -> str:
    assert result.verdict == "error"
    return step(result, "one").reason


@pytest.mark.long  # runs a suite to its end
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


def stray(tree: Project, program: str) -> str:
    """Write a program outside of the tree; return the command that runs it."""
    path = tree.folder.parent / "stray.py"
    path.write_text(program.format(source=f"{tree.folder}/src", script=f"{tree.folder}/bench.py"))
    return f"{sys.executable} {path}"


@pytest.mark.parametrize(
    ("program", "module"),
    rest_long(
        [
            ("import sys; sys.path[:0] = [{source!r}]; from shop import price; price.main()", "shop"),
            ("import runpy; runpy.run_path({script!r})", "bench.py"),
            (FORK, "shop"),
            (SPAWNED, "bench.py"),
        ],
        keep=2,
    ),
    ids=["sys.path", "run_path", "forked child", "spawned child"],
)
def test_code_of_the_users_tree_is_an_error_with_module_path_and_remedy(
    tree: Project, program: str, module: str
) -> None:
    two_revisions(tree)
    said = refused(gate(tree, stray(tree, program)))
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
    one = f"{{id: one, uses: command, runs: 2, timeout: 2s, with: {{command: '{stray(tree, UNREAD)}'}}}}"
    said = refused(tree.run(flow(baseline=one), base="main", head="topic"))
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


@pytest.mark.long  # as a copy in the environment
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


@pytest.mark.long  # builds an extension
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_an_extension_built_in_the_users_tree_is_an_error(tree: Project, backends: Path) -> None:
    tree.write(".gitignore", (tree.folder / ".gitignore").read_text() + "*.so\n")
    module = 'setuptools.Extension("fast", ["fast.c"], py_limited_api=True)'
    setup = f"import setuptools\nsetuptools.setup(ext_modules=[{module}])\n"
    tree.commit({"fast.c": EXTENSION, "setup.py": setup, "bench.py": "import fast\nprint('cost', 1)\n"})
    tree.git("checkout", "-qb", "topic")
    # An older pip would run setup.py itself, which requires pip in the environment.
    own = install(tree, backends, "-e", ".", "--use-pep517", "--config-settings", "editable_mode=compat")
    (built,) = tree.folder.glob("fast*.so")
    said = refused(gate(tree, f"{own} bench.py"))
    assert said.startswith(f"on base: code of another tree ran: fast from {built}; ")


@pytest.mark.long  # runs a suite to its end
def test_a_suite_that_imports_the_users_tree_is_an_error(tree: Project) -> None:
    two_revisions(tree)
    suite = "def test_price(benchmark):\n    from shop import price\n    benchmark(int)\n"
    both_at(tree, {"test_shop.py": suite})
    tree.write("test_shop.py", f"import sys\nsys.path.insert(0, {str(tree.folder / 'src')!r})\n{suite}")
    with_ = "with: {paths: test_shop.py, args: -p pytest_benchmark.plugin --benchmark-max-time=0.001}"
    alone = 'env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}'
    text = flow(baseline=f"{{id: one, uses: pytest-benchmark, {with_}, {alone}, runs: 1}}")
    assert "shop from" not in step(tree.run(text, base="main", head="topic"), "one").reason
    assert "on head: code of another tree ran: shop from" in refused(tree.run(text, base="main"))


def test_the_programs_own_sitecustomize_runs_as_ever(tree: Project) -> None:
    two_revisions(tree)
    custom = "import sys\nsys.mine = (__name__, __file__, __spec__.name)\n"
    bench = "import sys, sitecustomize\nassert sys.mine[1] == sitecustomize.__file__\nprint('cost 1')\n"
    both_at(tree, {"sitecustomize.py": custom, "bench.py": bench})
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
    check = f'{{id: test, run: "PYTHONPATH={tree.folder}/src {sys.executable} bench.py"}}'
    found = step(tree.run(flow(verify=check), base="main", head="topic"), "test")
    assert found.status == "failed"
    assert f"price from {tree.folder}/src/shop/price.py" in found.reason


@pytest.mark.long  # as a copy in the environment
def test_what_the_workflow_puts_on_the_path_comes_after_the_tree(tree: Project) -> None:
    two_revisions(tree)
    elsewhere = tree.folder.parent / "stray"
    for name, text in {"__init__.py": "", "price.py": PRICE % 7}.items():
        tree.write(str(elsewhere / "shop" / name), text)
    for value in (str(elsewhere), f"{tree.folder}/src", "src"):
        assert costs(gate(tree, f"{sys.executable} bench.py", more=f"env: {{PYTHONPATH: '{value}'}}, ")) == (100, 120)


def test_what_is_shared_may_be_loaded(tree: Project) -> None:
    two_revisions(tree)
    both_at(tree, {})
    tree.write("rigs/rig.py", "from shop import price\nprice.main()\n")
    head = "worktree: {share: [rigs]}"
    assert costs(gate(tree, f"{sys.executable} rigs/rig.py", head=head)) == (120, 120)


def test_both_sides_running_the_same_code_is_said(tree: Project) -> None:
    two_revisions(tree)
    tree.commit({"other.py": "print('cost', 3)\n"})
    for base, is_same in (("topic~1", True), ("topic~2", False)):
        tree.git("branch", "-qf", "main", base)
        assert (SAME_CODE in step(gate(tree, f"{sys.executable} bench.py"), "one").warnings) == is_same


@pytest.mark.parametrize("flag", rest_long(["-I", "-E", "-S"]))
def test_a_python_that_ignores_the_path_is_told_of(tree: Project, flag: str) -> None:
    two_revisions(tree)
    both_at(tree, {"alone.py": "print('cost', 3)\n"})
    text = flow(baseline=f"{{id: one, argv: [{sys.executable}, {flag}, alone.py], runs: 3, {PARSE}}}")
    assert UNSEEN in step(tree.run(text, base="main", head="topic"), "one").warnings


def test_a_candidate_is_measured_and_checked_by_its_own_code(tree: Project, backends: Path) -> None:
    two_revisions(tree)
    own = install(tree, backends, "-e", ".")
    tree.commit({"check.py": "import os\nfrom shop import price\nassert price.__file__.startswith(os.getcwd())\n"})
    half = '{id: half, technique: algorithm, why: half the price, run: "sed -i s/120/50/ src/shop/price.py"}'
    text = flow(
        "targets: {one: {cost: <60}}",
        baseline=f'{{id: one, run: "{own} bench.py", runs: 8, {PARSE}}}',
        profile='{id: cpu, run: "true"}',
        optimize=half,
        verify=f'{{id: check, run: "{own} check.py"}}',
    )
    result = tree.run(text.replace(f"    - {half}", f"    objective: one cost\n    steps:\n      - {half}"))
    assert [(item.id, item.decision) for item in result.optimizations] == [("half", "accepted")]
    assert [item.reason for item in result.steps if item.status == "failed"] == []
