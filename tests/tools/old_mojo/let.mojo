def main():
    let x = 1
    print(x)
