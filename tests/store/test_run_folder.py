"""The folder of a run: events survive a kill, and files are written completely or not at all."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.store import run_folder
from perfflow.store.event_chain import Chain, chain_of
from perfflow.store.run_folder import RunFolder, events, file_name, write_text


def test_a_new_run_has_a_folder_of_its_own_that_git_ignores(tmp_path: Path) -> None:
    with run_folder.create(tmp_path, None) as first, run_folder.create(tmp_path, None) as second:
        assert first.path != second.path
        assert first.path.name == first.id
        second.append({"event": "run"})
    assert (tmp_path / ".perfflow" / "runs" / "latest").resolve() == second.path
    assert (tmp_path / ".perfflow" / ".gitignore").read_text() == "*\n"


def test_a_gitignore_of_the_users_own_stays(tmp_path: Path) -> None:
    own = tmp_path / ".perfflow" / ".gitignore"
    own.parent.mkdir()
    own.write_text("runs/\n")
    with run_folder.create(tmp_path, None):
        assert own.read_text() == "runs/\n"


def test_out_is_new_or_empty_and_writable(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with run_folder.create(tmp_path, out) as made:
        assert made.path == out
    with pytest.raises(UserError, match="not empty"):
        run_folder.create(tmp_path, out)
    file = tmp_path / "file"
    file.write_text("x")
    for path in (file, file / "below"):
        with pytest.raises(UserError, match="cannot write"):
            run_folder.create(tmp_path, path)
    with pytest.raises(UserError, match="--out DIR"):
        run_folder.create(file, None)


def test_events_from_many_threads_are_whole_lines(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as made:

        def write(number: int) -> None:
            for _ in range(20):
                made.append({"n": number, "x": "é" * 5000})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
    found = list(events(tmp_path))
    assert sorted(event["n"] for event in found) == sorted(list(range(4)) * 20)


def _append_until_killed(path: Path) -> None:
    made = RunFolder(path, "r")
    number = 0
    while True:
        made.append({"n": number, "x": "y" * 500})
        number += 1


def test_a_kill_loses_at_most_the_last_line(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_append_until_killed, args=(tmp_path,))
    process.start()
    while not (tmp_path / "events.jsonl").exists() or (tmp_path / "events.jsonl").stat().st_size < 100_000:
        assert process.is_alive()
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    found = [event["n"] for event in events(tmp_path)]
    assert found == list(range(len(found)))
    assert len(found) > 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=4), st.data())
def test_events_read_back_and_any_cut_leaves_the_whole_lines(
    written: list[dict[str, object]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        with RunFolder(path, "r") as made:
            for event in written:
                made.append(event)
        assert list(events(path)) == written
        content = (path / "events.jsonl").read_bytes()
        cut = data.draw(st.integers(0, len(content)))
        (path / "events.jsonl").write_bytes(content[:cut])
        assert list(events(path)) == written[: content[:cut].count(b"\n")]


def test_text_that_is_not_unicode_does_not_break_an_event(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as made:
        made.append({"argv": ["caf\udce9"]})
    assert list(events(tmp_path)) == [{"argv": ["caf?"]}]


def test_a_damaged_line_before_the_last_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"a": 1}\n{"b": \n{"c": 3}\n')
    with pytest.raises(UserError, match=r"events\.jsonl:2: damaged line"):
        list(events(tmp_path))


@given(st.sets(st.text(min_size=1, max_size=140), min_size=2, max_size=6))
def test_file_names_are_safe_and_no_two_ids_share_one(ids: set[str]) -> None:
    names = {file_name(text) for text in ids}
    assert len(names) == len(ids)
    for name in names:
        assert name.isascii()
        assert not set(name) & set("/\0 *?'\"\\$")
        assert not name.startswith(".")
        assert 0 < len(name) < 120


def test_plain_ids_keep_their_names() -> None:
    plain = ["make", "make[opt=O2]", "a.b-c_d"]
    assert [file_name(text) for text in plain] == plain


def test_writing_leaves_the_old_text_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    write_text(path, "new \udce9")
    assert path.read_text() == "new \\udce9"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_text(tmp_path / "folder", "x")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]


def test_stored_runs_are_found_by_id_path_or_file(tmp_path: Path) -> None:
    with run_folder.create(tmp_path, None) as made:
        made.append({"event": "run"})
    for name in (made.id, "latest", str(made.path), str(made.path / "events.jsonl")):
        assert run_folder.find(tmp_path, name) == made.path
    (made.path / "result.json").write_text(json.dumps({}))
    assert run_folder.find(tmp_path, str(made.path / "result.json")) == made.path
    with pytest.raises(UserError, match="no run found"):
        run_folder.find(tmp_path, "none")


def lines_of(path: Path) -> list[bytes]:
    return (path / "events.jsonl").read_bytes().splitlines(keepends=True)


def test_each_line_is_bound_to_all_before_it(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as made:
        for number in range(3):
            made.append({"n": number})
        assert made.altered_line() == 0
        assert chain_of(lines_of(tmp_path)).head == made.chain
    for number, line in enumerate(lines_of(tmp_path), 1):
        for place in range(len(line)):
            lines = lines_of(tmp_path)
            lines[number - 1] = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
            # Without its key, the first line counts as one of an earlier version, which the second one binds.
            assert chain_of(lines).broken in ((1, 2) if number == 1 else (number,))


def forged(lines: Iterable[bytes], number: int) -> bytes:
    """Return the lines with another value in one of them, and a chain that fits."""
    chain, text = Chain(), b""
    for at, line in enumerate(lines):
        event = json.loads(line)
        del event["chain"]
        chain, made = chain.linked(json.dumps({"n": -1} if at == number else event, separators=(",", ":")).encode())
        text += made
    return text


@pytest.mark.parametrize("number", [0, 2])
def test_lines_with_a_chain_made_anew_are_not_those_that_were_written(tmp_path: Path, number: int) -> None:
    with RunFolder(tmp_path, "r") as made:
        for value in range(3):
            made.append({"n": value})
        (tmp_path / "events.jsonl").write_bytes(forged(lines_of(tmp_path), number))
        assert chain_of(lines_of(tmp_path)).broken == 0
        assert made.altered_line() == 3
        made.append({"n": 4})
        assert made.altered_line() == 4


def test_a_line_that_was_there_only_for_a_while_is_found_at_the_next_event(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as made:
        made.append({"n": 0})
        before = (tmp_path / "events.jsonl").read_bytes()
        (tmp_path / "events.jsonl").write_bytes(before + b'{"n": 9}\n')
        made.append({"n": 1})
        lines = lines_of(tmp_path)
        (tmp_path / "events.jsonl").write_bytes(lines[0] + lines[2])
        assert made.altered_line() == 2


def test_the_chain_goes_on_when_a_run_is_resumed_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path, "r") as made:
        made.append({"event": "run", "run": {"id": "r"}})
    with (tmp_path / "events.jsonl").open("ab") as stream:
        stream.write(b'{"event":"sam')
    with run_folder.reopen(tmp_path) as again:
        again.append({"n": 1})
        assert again.altered_line() == 0
    content = (tmp_path / "events.jsonl").read_bytes()
    (tmp_path / "events.jsonl").write_bytes(content.replace(b'"n":1', b'"n":2'))
    with pytest.raises(UserError, match=r"events\.jsonl:2: not what perfflow wrote"):
        run_folder.reopen(tmp_path)


def test_events_of_an_earlier_version_are_bound_by_the_first_line_with_a_hash(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"event":"run","run":{"id":"r"}}\n{"n":0}\n')
    with run_folder.reopen(tmp_path) as again:
        again.append({"n": 1})
        assert again.altered_line() == 0
    lines = lines_of(tmp_path)
    assert chain_of(lines).broken == 0
    lines[1] = b'{"n":5}\n'
    assert chain_of(lines).broken == 3
    assert chain_of([*lines_of(tmp_path), b'{"n":2}\n']).broken == 4
