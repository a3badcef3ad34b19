def f(owned x: String):
    print(x)


def main():
    pass
