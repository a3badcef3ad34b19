//! Handlers by name. A name is resolved once per session; dispatching goes by the id.

use std::collections::HashMap;

/// Bytes of a task's input.
pub const INPUT: usize = 64;

/// What runs for a task: a pure function of its input.
pub type Handler = fn(&[u8; INPUT]) -> u64;

/// The place of a handler in its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerId(u16);

/// The handlers that a conductor knows.
#[derive(Default)]
pub struct Registry {
    names: HashMap<String, HandlerId>,
    handlers: Vec<Handler>,
}

impl Registry {
    /// Adds a handler, or replaces the one of that name, whose id stays.
    ///
    /// # Panics
    /// If there are more than 65,536 handlers.
    pub fn register(&mut self, name: &str, handler: Handler) -> HandlerId {
        if let Some(&id) = self.names.get(name) {
            self.handlers[usize::from(id.0)] = handler;
            return id;
        }
        let id = HandlerId(u16::try_from(self.handlers.len()).expect("at most 65,536 handlers"));
        self.handlers.push(handler);
        self.names.insert(name.to_owned(), id);
        id
    }

    /// Finds the handler of that name.
    pub fn resolve(&self, name: &str) -> Option<HandlerId> {
        self.names.get(name).copied()
    }

    /// The handler with that id.
    pub fn handler(&self, id: HandlerId) -> Handler {
        self.handlers[usize::from(id.0)]
    }
}
