import benchmark


def f():
    pass


def main() raises:
    benchmark.run[f]().print()
