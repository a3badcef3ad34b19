"""What the tracer records of files, processes, threads and code that it does not see."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perfflow.unchanged.model import ABSENT, Differs, Unchanged, compare
from tests.unchanged.traced import Tree

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


def program(body: str, *functions: str) -> str:
    includes = ("dlfcn", "dirent", "fcntl", "pthread", "signal", "stdio", "stdlib", "string", "unistd")
    more = "".join(f"#include <{name}.h>\n" for name in (*includes, "sys/mman", "sys/stat", "sys/wait", "sys/socket"))
    parts = "\n".join(f"__attribute__((noinline)) {function}" for function in functions)
    return f"#define _GNU_SOURCE\n{more}\n{parts}\nint main(int argc, char **argv) {{ {body} return 0; }}\n"


def test_trace_names_files_read_look_ups_that_failed_and_folders_listed(trees: tuple[Tree, Tree]) -> None:
    tree = trees[0]
    (tree.path / "data").mkdir()
    (tree.path / "data" / "in.txt").write_text("1")
    (tree.path / "link").symlink_to("data/in.txt")
    listing = 'DIR *d = opendir("data"); while (readdir(d)); closedir(d);'
    tree.build(program(f'fopen("link", "r"); access("fast.cfg", 0); {listing} struct stat s; stat("bench.c", &s);'))
    found = tree.trace()
    assert found.inputs["fast.cfg"] == ABSENT
    assert found.inputs["link (link)"] == "data/in.txt"
    assert found.inputs["data"] == "folder"
    assert {"link", "data/", "bench.c"} <= found.inputs.keys()
    assert "bench" in found.loaded
    assert "bench" not in found.inputs
    assert any(Path(name).name.startswith("libc.so") for name in found.loaded.keys() & found.inputs.keys())


def test_a_file_that_only_head_has_counts(trees: tuple[Tree, Tree]) -> None:
    for tree in trees:
        tree.build(program('fopen("fast.cfg", "r"); puts("bench");'))
    assert isinstance(compare(*(tree.trace() for tree in trees)), Unchanged)
    (trees[1].path / "fast.cfg").write_text("")
    assert compare(*(tree.trace() for tree in trees)) == Differs(("fast.cfg",))


def test_a_file_that_joins_a_listed_folder_counts(trees: tuple[Tree, Tree]) -> None:
    for tree in trees:
        (tree.path / "data").mkdir()
        tree.build(program('DIR *d = opendir("data"); while (readdir(d)); closedir(d);'))
    (trees[1].path / "data" / "new").write_text("")
    assert compare(*(tree.trace() for tree in trees)) == Differs(("data/",))


def test_own_outputs_are_no_inputs(trees: tuple[Tree, Tree]) -> None:
    body = 'FILE *f = fopen("out", "w"); fprintf(f, "%d", getpid()); fclose(f); f = fopen("out", "r"); fclose(f);'
    for tree in trees:
        tree.build(program(body))
    traces = [tree.trace() for tree in trees]
    assert isinstance(compare(*traces), Unchanged)
    assert traces[0].inputs["out"] == ABSENT
    # It exists before the second run, which empties it before it reads it.
    assert not trees[0].trace().unknown


def test_a_program_that_changes_its_input_is_not_known(trees: tuple[Tree, Tree]) -> None:
    trees[0].build(program('int f = open("state", O_RDWR); char c; read(f, &c, 1); write(f, "x", 1);'))
    (trees[0].path / "state").write_text("12")
    assert trees[0].trace().unknown == ("it changes state",)


@pytest.mark.parametrize("change", ['fprintf(fopen("state", "a"), "x");', 'truncate("state", 1);'])
def test_what_a_file_held_before_the_program_changed_it_is_an_input(change: str, trees: tuple[Tree, Tree]) -> None:
    trees[0].build(program(f'{change} fopen("state", "r");'))
    (trees[0].path / "state").write_text("12")
    assert trees[0].trace().unknown == ("it changes state",)


def test_a_file_that_is_only_added_to_is_no_input(trees: tuple[Tree, Tree]) -> None:
    trees[0].build(program('fprintf(fopen("log", "a"), "x");'))
    (trees[0].path / "log").write_text("12")
    found = trees[0].trace()
    assert not found.unknown
    assert "log" not in found.inputs


def test_functions_of_threads_and_children_count(trees: tuple[Tree, Tree]) -> None:
    body = """
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(threads + i, 0, work, 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    if (argc == 1) {
        if (!fork()) { in_child(); execl("./bench", "bench", "again", (char *)0); }
        wait(0);
        if (!vfork()) _exit(0);
        wait(0);
    } else after_exec();
    """
    functions = ("void *work(void *x) { return x; }", 'void in_child(void) { puts("child"); }')
    trees[0].build(program(body, *functions, 'void after_exec(void) { puts("again"); }'), "-pthread")
    found = trees[0].trace()
    assert {"main", "work", "in_child", "after_exec"} <= found.functions.keys()
    assert not found.unknown
    assert not found.unseen


def test_a_library_that_is_loaded_at_run_time_counts(trees: tuple[Tree, Tree]) -> None:
    body = 'int (*f)(void) = (int (*)(void))dlsym(dlopen("./plugin.so", RTLD_NOW), "plugged"); printf("%d", f());'
    for tree, number in zip(trees, (1, 2), strict=True):
        library = f"int other(void) {{ return {number}; }}\nint plugged(void) {{ return 7; }}\n"
        tree.build(library, "-shared", "-fPIC", name="plugin.so", suffix=".c")
        tree.build(program(body), "-ldl")
        for source in tree.path.glob("*.c"):
            source.unlink()
    traces = [tree.trace() for tree in trees]
    assert "plugged" in traces[0].functions
    assert isinstance(found := compare(*traces), Unchanged)
    assert found.by == "code"
    trees[1].build("int plugged(void) { return 8; }\n", "-shared", "-fPIC", name="plugin.so", suffix=".c")
    assert compare(traces[0], trees[1].trace()) == Differs(("plugged",))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);", "it makes code while it runs"),
        ("mprotect(aligned_alloc(4096, 4096), 4096, PROT_READ | PROT_EXEC);", "it makes code while it runs"),
    ],
)
def test_code_that_is_made_is_not_seen(trees: tuple[Tree, Tree], body: str, reason: str) -> None:
    trees[0].build(program(body))
    found = trees[0].trace()
    assert found.unseen == (reason,)
    assert isinstance(compare(found, found), Unchanged)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_exceptions_are_not_seen(trees: tuple[Tree, Tree]) -> None:
    source = "int main(int n, char **) { try { throw n; } catch (int) { return 0; } }"
    trees[0].build(source, compiler="g++", suffix=".cc")
    assert trees[0].trace().unseen == ("it throws exceptions",)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("if (!fork()) raise(SIGKILL); wait(0);", 0, "a process of it was killed"),
        ("abort();", 134, "a process of it was killed"),
        ("if (!fork()) { sleep(60); }", 0, "it leaves processes running"),
        ("unshare(0x20000);", 0, "it changes namespaces or mounts"),
    ],
)
def test_what_leaves_the_trace_makes_all_unknown(trees: tuple[Tree, Tree], body: str, status: int, reason: str) -> None:
    trees[0].build(program(body).replace("<unistd.h>", "<unistd.h>\n#include <sched.h>"))
    found = trees[0].trace(status=status)
    assert reason in found.unknown
    assert isinstance(compare(found, found), Differs)


def test_a_program_outside_of_the_tree_reads_files_of_the_tree(trees: tuple[Tree, Tree]) -> None:
    for tree in trees:
        (tree.path / "words.txt").write_text("one\n")
    same = [tree.trace("grep", "-c", "one", "words.txt") for tree in trees]
    assert isinstance(compare(*same), Unchanged)
    (trees[1].path / "words.txt").write_text("one\none\n")
    assert compare(same[0], trees[1].trace("grep", "-c", "one", "words.txt")) == Differs(("words.txt",))


def test_trace_returns_the_status_of_the_program(trees: tuple[Tree, Tree]) -> None:
    trees[0].build(program("return 3;"))
    trees[0].trace(status=3)
    trees[0].trace("./missing", status=127)
