use std::hint::black_box;
static TABLE: [u32; 6] = [1, 4, 9, 16, 25, 36];
trait Shape { fn area(&self) -> f64; }
struct Circle(f64);
struct Square(f64);
impl Shape for Circle { #[inline(never)] fn area(&self) -> f64 { 3.5 * self.0 * self.0 } }
impl Shape for Square { #[inline(never)] fn area(&self) -> f64 { self.0 * self.0 } }
#[inline(never)]
fn choose(index: usize, words: &[&str]) -> u32 {
    match index {
        0 => 11,
        1 => TABLE[black_box(index)],
        2 => words[black_box(1)].len() as u32,
        3 => words.iter().map(|word| word.parse::<u16>().map(u32::from).unwrap_or(7)).sum(),
        4 => black_box(index as u32).wrapping_mul(31),
        _ => panic!("too large"),
    }
}
#[inline(never)]
fn unused(x: u32) -> String { format!("{}{}", '_', x) }
fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Circle(2.0)), Box::new(Square(3.0))];
    let area: f64 = shapes.iter().take(black_box(1)).map(|shape| shape.area()).sum();
    let sum: u32 = (0..black_box(5)).map(|index| choose(index, black_box(&["12", "beta", "14"]))).sum();
    if std::env::args().count() > 5 { println!("{}", unused(sum)); }
    println!("bench {} {}", area, sum);
}
