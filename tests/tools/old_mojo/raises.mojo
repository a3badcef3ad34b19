from std.benchmark import Bench


def main():
    Bench().dump_report()
