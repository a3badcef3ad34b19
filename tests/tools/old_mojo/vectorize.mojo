from std.algorithm import vectorize


def main():
    @parameter
    def body[w: Int](i: Int):
        pass

    vectorize[body, 8](100)
