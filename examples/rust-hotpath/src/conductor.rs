//! Tasks wait in lanes, the most urgent first, and are dispatched one at a time.

use std::collections::VecDeque;

use crate::context::Context;
use crate::registry::{HandlerId, Registry, INPUT};

/// How urgent a task is. A lane is served when all lanes before it are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Somebody is waiting for it.
    Interactive,
    /// It should be done soon.
    Normal,
    /// It is done when there is nothing else to do.
    Background,
}

const LANES: usize = 3;

/// What became of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its handler returned this.
    Done(u64),
    /// Its deadline had passed before its turn came; its handler was not called.
    Expired,
}

struct Task {
    id: u64,
    handler: HandlerId,
    deadline: u64,
    input: [u8; INPUT],
}

/// A single-threaded conductor; its clock ticks once with each dispatch.
pub struct Conductor {
    registry: Registry,
    lanes: [VecDeque<Box<Task>>; LANES],
    clock: u64,
    submitted: u64,
}

impl Conductor {
    /// A conductor without tasks, for the handlers of `registry`.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            lanes: Default::default(),
            clock: 0,
            submitted: 0,
        }
    }

    /// The handlers it knows.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Ticks since the start.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// How many tasks wait.
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    /// Queues a task of the request `context` at the end of `lane`, and returns the task's id.
    #[inline]
    pub fn submit(&mut self, context: &Context, lane: Lane, handler: HandlerId, input: &[u8; INPUT]) -> u64 {
        let id = self.submitted;
        self.submitted += 1;
        let task = Box::new(Task {
            id,
            handler,
            deadline: context.deadline(),
            input: *input,
        });
        self.lanes[lane as usize].push_back(task);
        id
    }

    /// Takes the task whose turn it is and runs its handler; `None` if no task waits.
    #[inline]
    pub fn dispatch(&mut self) -> Option<(u64, Outcome)> {
        let task = self.lanes.iter_mut().find_map(VecDeque::pop_front)?;
        self.clock += 1;
        if task.deadline < self.clock {
            return Some((task.id, Outcome::Expired));
        }
        let handler = self.registry.handler(task.handler);
        Some((task.id, Outcome::Done(handler(&task.input))))
    }
}
