"""Sources in older dialects of Mojo, each with a part of the remedy that perfflow reports."""

from __future__ import annotations

from collections.abc import Mapping

_RUN = "def f():\n    pass\n\n\ndef main() raises:\n    benchmark.run[f]().print()\n"
_NESTED = """from std.benchmark import Bench, Bencher, BenchId


def main() raises:
    var bench = Bench()

    @parameter
    def measured(mut b: Bencher):
        @parameter
        def once():
            pass

        b.iter[once]()

    bench.bench_function[measured](BenchId("once"))
    bench.dump_report()
"""
_VECTORIZE = """from std.algorithm import vectorize


def main():
    @parameter
    def body[w: Int](i: Int):
        pass

    vectorize[body, 8](100)
"""
OLD: Mapping[str, tuple[str, str]] = {
    "fn": ("fn main():\n    pass\n", "write `def`"),
    "alias": ("alias N = 4\n\n\ndef main():\n    print(N)\n", "`comptime NAME = ...`"),
    "let": ("def main():\n    let x = 1\n    print(x)\n", "write `var` for `let`"),
    "inout": ("def f(inout x: Int):\n    x += 1\n\n\ndef main():\n    pass\n", "write `mut` for `inout`"),
    "inout-self": ("struct A:\n    def __init__(inout self):\n        pass\n\n\ndef main():\n    pass\n", "`out self`"),
    "owned": ("def f(owned x: String):\n    print(x)\n\n\ndef main():\n    pass\n", "write `var` for `owned`"),
    "borrowed": ("def f(borrowed x: String):\n    print(x)\n\n\ndef main():\n    pass\n", "leave out `borrowed`"),
    "parameter-if": ('def main():\n    @parameter\n    if True:\n        print("x")\n', "`comptime if`"),
    "parameter-for": ("def main():\n    @parameter\n    for i in range(2):\n        print(i)\n", "`comptime for`"),
    "module": ("from benchmark import run\n\n\ndef main():\n    pass\n", "imported from std"),
    "run": (f"from std import benchmark\n\n\n{_RUN}", "`run(f)`"),
    "import-and-run": (f"import benchmark\n\n\n{_RUN}", "imported from std"),
    "closures": (_NESTED, "`b.iter(f)`"),
    "capture": (
        "def main():\n    var n = 1\n\n    def f():\n        n += 1\n\n    f()\n    print(n)\n",
        "`def f() {mut}:`",
    ),
    "unified": (
        "def main():\n    var n = 1\n\n    def f() unified {mut}:\n        n += 1\n\n    f()\n",
        "leave out `unified`",
    ),
    "vectorize": (_VECTORIZE, "`vectorize[WIDTH](n, body)`"),
    "raises": ("from std.benchmark import Bench\n\n\ndef main():\n    Bench().dump_report()\n", "add `raises`"),
    "value": ("@value\nstruct A:\n    var x: Int\n\n\ndef main():\n    print(A(1).x)\n", "`@fieldwise_init`"),
    "simdwidthof": (
        "from std.sys import simdwidthof\n\n\ndef main():\n    print(simdwidthof[DType.float32]())\n",
        "`simd_width_of`",
    ),
    "str": ("def main():\n    print(str(1))\n", "`String(...)`"),
    "list": ("def main():\n    var x = List[Int](1, 2, 3)\n    print(x[0])\n", "`[1, 2, 3]`"),
    "no-main": ("def f():\n    pass\n", "`def main()`"),
    "no-module": ("from of_nobody import f\n\n\ndef main():\n    f()\n", "`include`"),
}
