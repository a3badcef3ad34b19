from of_nobody import f


def main():
    f()
