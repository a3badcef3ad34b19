// tasks [ROUNDS]: of each round, queue::submit() boxes a task of 64 B and queue::drain() frees it, table::words() sums up
// a KiB and allocates nothing. No function but main is kept from being inlined.
mod queue {
    pub struct Task {
        words: [u64; 8],
    }

    pub struct Queue {
        waiting: Vec<Box<Task>>,
    }

    impl Queue {
        pub fn new() -> Self {
            Queue { waiting: Vec::with_capacity(16) }
        }

        pub fn submit(&mut self, number: u64) {
            self.waiting.push(Box::new(Task { words: [number; 8] }));
        }

        pub fn drain(&mut self) -> u64 {
            self.waiting.drain(..).map(|task| task.words[std::hint::black_box(3)]).sum()
        }
    }
}

mod table {
    pub fn words(numbers: &[u64; 128]) -> u64 {
        numbers.iter().fold(1, |sum, number| sum.rotate_left(5) ^ number.wrapping_mul(sum | 1))
    }
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).map_or(1000, |word| word.parse().unwrap());
    let (mut queue, mut sum) = (queue::Queue::new(), 0u64);
    for round in 0..rounds {
        queue.submit(round);
        sum = sum.wrapping_add(queue.drain() ^ table::words(std::hint::black_box(&[round; 128])));
    }
    eprintln!("{sum}");
}
