from std.sys import simdwidthof


def main():
    print(simdwidthof[DType.float32]())
