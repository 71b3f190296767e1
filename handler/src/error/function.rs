//! A payload function that failed, with what its author wants to see.

use std::fmt;

use runtime::{Failure, LogEntry, Sources, inert};

use crate::payload::Cost;

/// How many of the last logs are told.
const LOGS_MAX: usize = 8;
/// How much of each, in characters.
const LOG_CHARS_MAX: usize = 120;

/// A payload function that failed. Its text is one line; the alternate form (`{:#}`) adds the excerpt and the last logs,
/// a line each.
#[derive(Debug)]
pub struct Fault {
    /// Which function failed, where and why.
    pub failure: Failure,
    /// The line of its text with a caret under the column, when known.
    pub excerpt: Option<String>,
    /// What the functions logged up to the failure.
    pub logs: Vec<LogEntry>,
    /// What it cost up to there; nothing when it could not even be loaded.
    pub cost: Cost,
}

impl Fault {
    /// The fault of a function whose texts are `sources`.
    pub fn new(failure: Failure, sources: &Sources, logs: Vec<LogEntry>, cost: Cost) -> Self {
        Self { excerpt: failure.excerpt(sources), failure, logs, cost }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", inert(&self.failure.to_string()))?;
        if f.alternate() {
            if let Some(excerpt) = &self.excerpt {
                write!(f, "\n{excerpt}")?;
            }
            for entry in &self.logs[self.logs.len().saturating_sub(LOGS_MAX)..] {
                let text: String = entry.fields.join(" ").chars().take(LOG_CHARS_MAX).collect();
                write!(f, "\nthe {} logged: {}", entry.slot.name(), inert(&text))?;
            }
        }
        Ok(())
    }
}
