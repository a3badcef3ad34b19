def f(inout x: Int):
    x += 1


def main():
    pass
