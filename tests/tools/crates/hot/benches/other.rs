fn main() { println!("this is no harness that perfflow knows"); }
