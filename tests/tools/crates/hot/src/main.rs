fn main() {
    let rounds = std::env::args().nth(1).map_or(1000, |text| text.parse().expect("a number"));
    println!("{}", hot_loop::mix(rounds));
}
