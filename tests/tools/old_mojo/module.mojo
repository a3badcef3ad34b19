from benchmark import run


def main():
    pass
