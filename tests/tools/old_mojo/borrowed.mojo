def f(borrowed x: String):
    print(x)


def main():
    pass
