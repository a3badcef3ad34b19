fn main():
    pass
