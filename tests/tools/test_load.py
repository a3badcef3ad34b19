"""perfflow's own tool files with their real programs: what they send, and that they leave the user's files alone."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from tests.tools import servers
from tests.tools.harness import call_of, parsed_of, run, tool, values_of


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not on PATH: {', '.join(missing)}")


def test_oha_waits_for_its_last_requests_and_times_them_from_when_they_were_due(tmp_path: Path) -> None:
    (process,) = tool("oha").invocations(call_of("oha", tmp_path, url="http://a/", rate=50, duration="2s"))
    assert process.argv[1:] == (
        *("--no-tui", "--output-format=json", "--latency-correction", "-w"),
        *("-z2s", "-q50", "-c4", "-mGET", "http://a/"),
    )
    (process,) = tool("oha").invocations(call_of("oha", tmp_path, url="http://a/", **servers.FORM))
    assert process.argv[-8:] == ("-mPOST", "-d", "a=b c&d", "-H", "X-Word: one two", "-H", "X-Other: 3", "http://a/")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("wrk", {"duration": "1s"}, marks=needs("wrk")),
        pytest.param("vegeta", {"duration": "500ms", "rate": 100}, marks=needs("vegeta")),
    ],
)
def test_a_generator_sends_the_method_the_body_and_each_header(
    name: str, options: Mapping[str, Any], tmp_path: Path
) -> None:
    url = f"{servers.address()}/form"
    values = values_of(parsed_of(run(name, tmp_path / "out", url=url, **options, **servers.FORM)))
    assert values.keys() == {"time", "rate"}
    ran = run(name, tmp_path / "other", url=url, **options)
    with pytest.raises(ToolOutputError, match=r"^\d+ requests were answered with (a status of 400|status 400)"):
        ran.parse()


@needs("sqlite3")
def test_a_script_changes_only_a_copy_of_the_database(tmp_path: Path) -> None:
    file, script = tmp_path / "a b.db", tmp_path / "a script.sql"
    with sqlite3.connect(file) as database:
        database.execute("create table sales as select 1 as price")
    script.write_text("update sales set price = 2;")
    before = file.read_bytes()
    assert "time" in values_of(parsed_of(run("sqlite3", tmp_path / "out", database=str(file), script=str(script))))
    assert file.read_bytes() == before
    with sqlite3.connect(tmp_path / "out" / "database") as copy:
        assert copy.execute("select price from sales").fetchall() == [(2,)]
    script.write_text("select 1; selec;")
    assert run("sqlite3", tmp_path / "out", database=str(file), script=str(script)).status


@needs("size")
def test_the_sections_of_a_program_are_counted_beside_its_bytes(built: Mapping[str, str], tmp_path: Path) -> None:
    values = values_of(parsed_of(run("size", tmp_path / "out", file=built["hot"], of="sections")))
    assert values.keys() == {"file_size", "text_size", "rodata_size", "data_size", "bss_size"}
    assert values["file_size"] == Path(built["hot"]).stat().st_size
    assert 0 < values["text_size"] < values["file_size"]


@needs("npm")
def test_a_package_of_npm_is_counted_without_packing_it(tmp_path: Path) -> None:
    # Without ./ npm would fetch a package of this name.
    place = tmp_path / "react"
    place.mkdir()
    (place / "package.json").write_text('{"name": "demo", "version": "1.0.0"}\n')
    values = values_of(parsed_of(run("size", tmp_path / "out", file=str(place), of="npm")))
    assert values["unpacked_size"] == (place / "package.json").stat().st_size
    assert [path.name for path in place.iterdir()] == ["package.json"]


def test_the_same_builder_does_not_make_two_builds_the_same(tmp_path: Path) -> None:
    assert tool("build-time").build.executed(call_of("build-time", tmp_path, "/bin/true", clean="true")) == ()


@needs("make")
def test_a_build_finds_something_to_do_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").write_text("out: a b\n\techo built >> out\nclean:\n\techo cleaned >> log\n\trm -f out\n")
    for name in "ab":
        (tmp_path / name).touch()
    for _ in range(2):
        parsed_of(run("build-time", tmp_path / "sample", shutil.which("make") or "", touch=["a", "b"]))
    assert (tmp_path / "out").read_text() == "built\n" * 2
    parsed_of(run("build-time", tmp_path / "sample", shutil.which("make") or "", clean="make clean"))
    assert (tmp_path / "out").read_text() == "built\n"
    for touch, said in ((["c"], "no such file: c"), ([], "build-time needs clean or touch")):
        assert run("build-time", tmp_path / "sample", "/bin/true", touch=touch).status == 1
        assert said in (tmp_path / "sample" / "prepare.stderr").read_text()
    assert not (tmp_path / "c").exists()
