//! Distances of words and of sentences.
extern crate strsim;

use strsim::{levenshtein, normalized_levenshtein};

fn main() {
    let mut state: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let letters: Vec<char> = "abcdefgh é日".chars().collect();
    let mut text = |length: u64| -> String { (0..length).map(|_| letters[draw(11) as usize]).collect() };
    let mut total = 0;
    for length in (0..40).chain((1000..4000).step_by(200)) {
        let (first, second) = (text(length), text(length + length / 3));
        let found = levenshtein(&first, &second);
        total += found;
        println!("{length} {found} {:.6}", normalized_levenshtein(&first, ""));
    }
    println!("{total}");
}
