struct A:
    def __init__(inout self):
        pass


def main():
    pass
