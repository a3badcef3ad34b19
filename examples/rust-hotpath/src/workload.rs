//! What the benchmarks and `hotloop` do: the same on every machine and in every run.

use crate::codec::{encode, Decoder};
use crate::conductor::{Conductor, Lane};
use crate::context::Context;
use crate::registry::{HandlerId, Registry, INPUT};

/// Tasks that wait while others come and go.
pub const BACKLOG: usize = 64;

/// Tasks that a session submits before it ends and the next one resolves its handler.
const SESSION: u64 = 256;

const NAMES: [&str; 3] = ["route", "meter", "audit"];

/// The context of a request, as a front end opens it.
pub fn context(number: u32, deadline: u64) -> Context {
    Context::new(format!("request-{number:08x}"), deadline)
        .with_header("tenant=north, user=u-20417; hidden, trace=00-4bf92f3577b34da6-01")
}

/// A source of tasks and the conductor they go to.
pub struct Traffic {
    conductor: Conductor,
    context: Context,
    handler: HandlerId,
    inputs: Vec<[u8; INPUT]>,
    sent: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self::new()
    }
}

impl Traffic {
    /// Traffic with a backlog of [`BACKLOG`] tasks.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let handler = registry.register("route", route);
        registry.register("meter", meter);
        registry.register("audit", audit);
        let mut bytes = Bytes::new(1);
        let mut traffic = Self {
            conductor: Conductor::new(registry),
            context: context(0, u64::MAX),
            handler,
            inputs: (0..BACKLOG).map(|_| std::array::from_fn(|_| bytes.next())).collect(),
            sent: 0,
        };
        for _ in 0..BACKLOG {
            traffic.submit();
        }
        traffic
    }

    /// Submits one task and dispatches one; returns what the handler returned.
    ///
    /// # Panics
    /// Never: the backlog is not empty, and its tasks do not expire.
    #[inline]
    pub fn step(&mut self) -> u64 {
        self.submit();
        match self.conductor.dispatch() {
            Some((_, crate::conductor::Outcome::Done(value))) => value,
            other => unreachable!("a task of the backlog became {other:?}"),
        }
    }

    #[inline]
    fn submit(&mut self) {
        if self.sent % SESSION == 0 {
            let name = NAMES[(self.sent / SESSION) as usize % NAMES.len()];
            self.handler = self.conductor.registry().resolve(name).expect("registered by new");
        }
        let input = &self.inputs[self.sent as usize % BACKLOG];
        self.conductor.submit(&self.context, Lane::Normal, self.handler, input);
        self.sent += 1;
    }
}

/// What a stream consists of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    frames: usize,
    shortest: usize,
}

/// A packet of a few short frames.
pub const SMALL: Shape = Shape {
    frames: 4,
    shortest: 72,
};

/// A batch of many frames.
pub const LARGE: Shape = Shape {
    frames: 512,
    shortest: 80,
};

/// A stream of that shape; its payloads have from `shortest` bytes up to twice as many.
pub fn stream(shape: Shape) -> Vec<u8> {
    let mut bytes = Bytes::new(2);
    let mut stream = Vec::new();
    for _ in 0..shape.frames {
        let length = shape.shortest + usize::from(bytes.next()) * shape.shortest / 256;
        let payload: Vec<u8> = (0..length).map(|_| bytes.next()).collect();
        encode(&mut stream, bytes.next(), &payload);
    }
    stream
}

/// Decodes a stream as its reader does, a frame at a time; returns the number of bytes in all payloads.
///
/// # Panics
/// If the stream is not one that can be decoded.
#[inline]
pub fn read(stream: &[u8]) -> usize {
    Decoder::new(stream)
        .map(|frame| frame.expect("a stream of this workload").payload().len())
        .sum()
}

/// Where a task of this tenant goes: a hash of its input.
fn route(input: &[u8; INPUT]) -> u64 {
    words(input).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}

/// How much the task counts: the sum of its input's bytes.
fn meter(input: &[u8; INPUT]) -> u64 {
    input.iter().map(|&byte| u64::from(byte)).sum()
}

/// What the audit log keeps of the task.
fn audit(input: &[u8; INPUT]) -> u64 {
    words(input).fold(0, |seal, word| (seal ^ word).rotate_left(17).wrapping_mul(5))
}

fn words(input: &[u8; INPUT]) -> impl Iterator<Item = u64> + '_ {
    input
        .chunks_exact(8)
        .map(|chunk| chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

/// Bytes of an xorshift generator.
struct Bytes(u64);

impl Bytes {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u8
    }
}
