def main():
    print(str(1))
