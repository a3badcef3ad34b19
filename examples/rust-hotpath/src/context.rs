//! What a request carries through the system: who it is, how long it may take, and what callers attached to it.

use std::collections::BTreeMap;

/// The context of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    id: String,
    deadline: u64,
    baggage: BTreeMap<String, String>,
}

impl Context {
    /// Opens the context of request `id`; `deadline` is a tick of the conductor's clock.
    pub fn new(id: impl Into<String>, deadline: u64) -> Self {
        Self {
            id: id.into(),
            deadline,
            baggage: BTreeMap::new(),
        }
    }

    /// Attaches a value that travels with the request; a key that is there already is replaced.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.baggage.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Attaches the members of a W3C baggage header: `key=value`, commas between them. What follows a semicolon in a
    /// member is not kept, and a member without a key or an equals sign is passed over.
    #[must_use]
    pub fn with_header(mut self, header: &str) -> Self {
        for member in header.split(',') {
            let pair = member.split(';').next().and_then(|pair| pair.split_once('='));
            if let Some((key, value)) = pair.filter(|(key, _)| !key.trim().is_empty()) {
                self = self.with(key.trim(), value.trim());
            }
        }
        self
    }

    /// Opens the context of a part of this request: same baggage, and a deadline that is no later.
    pub fn child(&self, part: &str, deadline: u64) -> Self {
        Self {
            id: format!("{}/{part}", self.id),
            deadline: deadline.min(self.deadline),
            baggage: self.baggage.clone(),
        }
    }

    /// The request's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The last tick at which a task of this request may still begin.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// What was attached under `key`.
    pub fn baggage(&self, key: &str) -> Option<&str> {
        self.baggage.get(key).map(String::as_str)
    }
}
