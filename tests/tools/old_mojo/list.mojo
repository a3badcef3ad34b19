def main():
    var x = List[Int](1, 2, 3)
    print(x[0])
