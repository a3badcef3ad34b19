def main():
    @parameter
    if True:
        print("x")
