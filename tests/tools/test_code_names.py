"""Whether a place is the program's own code, and the name of its function."""

from __future__ import annotations

from collections import Counter

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.tools import python_command, symbol_names
from perfflow.tools.linux import costly_calls
from perfflow.tools.valgrind.dhat import Within


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("_ZN4demo5queue5Queue6submit17h0123456789abcdefE", "demo::queue::Queue::submit"),
        ("demo::drain::h0123456789abcdef", "demo::drain"),
        ("alloc::boxed::Box$LT$T$GT$::new::h6c49706dee06aebb", "alloc::boxed::Box<T>::new"),
        ("alloc[fdfd2bd8633a6659]::alloc::alloc", "alloc::alloc::alloc"),
        ("operator new[](unsigned long)", "operator new[](unsigned long)"),
        ("_ZN4demo17h01E", "_ZN4demo17h01E"),
    ],
)
def test_rust_names(name: str, plain: str) -> None:
    assert symbol_names.plain_rust(name) == plain


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (
            "kernels::saxpy[LITMutOrigin,::Origin[True, $0]](::Pointer[True, $0, ::SIMD[DType.float32, 1], $1],::Bool)",
            "kernels::saxpy",
        ),
        (
            "std::builtin::_format_float::_to_decimal[::DType,::DType](::SIMD[$0, 1]),CarrierDType=ui64,dtype=f64",
            "std::builtin::_format_float::_to_decimal",
        ),
        ("kernels::add[LITMutOrigin,::Origin[True, $0", "kernels::add"),
        ("kernels::draft::main(::List[::SIMD[DType.int, 1]])", "kernels::draft::main"),
        ("[::SIMD[DType.int, 1]]", "[::SIMD[DType.int, 1]]"),
        ("demo::drain::h0123456789abcdef", "demo::drain"),
        ("std::map<int, int>::operator[](int const&)", "std::map<int, int>::operator[](int const&)"),
        ("<[T] as core::slice::Sort>::sort", "<[T] as core::slice::Sort>::sort"),
        ("bench::main()", "bench::main()"),
    ],
)
def test_symbol_names(name: str, plain: str) -> None:
    assert symbol_names.plain(name) == plain


@pytest.mark.parametrize(
    "file",
    [
        "/rustc/59/library/core/src/a.rs",
        "./malloc/./malloc.c",
        "libio/./libio/x.c",
        "Mojo/stdlib/std/a.mojo",
        "",
        "???",
    ],
)
def test_what_is_not_own(file: str) -> None:
    assert not python_command.is_own(file)


@pytest.mark.parametrize("file", ["src/lib.rs", "/home/a/demo/src/lib.rs", "../src/hot.c", "/usr/src/app/main.c"])
def test_what_is_own(file: str) -> None:
    assert python_command.is_own(file)


def test_an_inlined_function_that_may_be_one_of_two_is_no_figure() -> None:
    within = Within("Queue::submit", ["demo::tasks::Queue::submit", "demo::tasks::Pool::submit"])
    with pytest.raises(ToolOutputError, match="Pool::submit"):
        within.names("submit", "/demo/src/tasks.rs")
    assert Within("tasks::submit", []).names("submit", "/demo/src/tasks.rs")


def test_a_name_says_what_a_function_does() -> None:
    kinds = [costly_calls.kind_of(name) for name in ("malloc", "__memmove_avx_unaligned", "main", "pthread_mutex_lock")]
    assert kinds == ["allocating and freeing", "copying memory", "", "locking"]


@pytest.mark.parametrize("kind", ["allocating and freeing", "reading and writing"])
def test_what_is_said_of_costly_calls_is_read_back(kind: str) -> None:
    text = costly_calls.cause(Counter({(kind, "malloc"): 30, (kind, "free(x, y)"): 12, ("other", "f"): 8}), 60)
    assert costly_calls.parse_cause(text) == costly_calls.CostlyCall(kind, 0.7, "malloc, free")
    assert costly_calls.parse_cause("measured: 12 instructions") is None
    assert costly_calls.parse_cause("") is None


@pytest.mark.parametrize("name", ["__GI___libc_write", "read", "pwrite64", "__open64_nocancel", "ksys_write"])
def test_system_calls_for_files_are_a_kind(name: str) -> None:
    assert costly_calls.kind_of(name) == "reading and writing"


@pytest.mark.parametrize("name", ["reader", "write_header", "openssl_init", "spread"])
def test_names_that_begin_like_them_are_not(name: str) -> None:
    assert costly_calls.kind_of(name) == ""
