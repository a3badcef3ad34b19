@value
struct A:
    var x: Int


def main():
    print(A(1).x)
