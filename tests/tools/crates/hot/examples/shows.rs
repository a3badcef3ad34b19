fn main() { println!("example"); }
