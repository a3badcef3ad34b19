alias N = 4


def main():
    print(N)
