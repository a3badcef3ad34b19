def main():
    var n = 1

    def f() unified {mut}:
        n += 1

    f()
