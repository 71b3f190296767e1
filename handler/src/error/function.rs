//! The failure of a payload function, with what its author needs to fix it.

use std::fmt;

use runtime::{Failure, LogEntry, Sources, sanitize};

use crate::status::cost::Cost;

const LOGS_MAX: usize = 8;
/// Maximum length of each log entry in the text, in characters.
const LOG_CHARS_MAX: usize = 120;

/// A payload function that failed.
///
/// Its text is one line. The alternate form (`{:#}`) adds the excerpt and the last logs, one per line.
#[derive(Debug)]
pub struct FunctionError {
    /// The failing function, with the place and reason.
    pub failure: Failure,
    /// The failing line with a caret under the column, when known.
    pub excerpt: Option<String>,
    /// Console output of the functions before the failure.
    pub logs: Vec<LogEntry>,
    /// Cost of the functions before the failure; zero if they could not be loaded.
    pub cost: Cost,
    /// The version of the functions, if they are stored.
    pub version: Option<u32>,
}

impl FunctionError {
    pub(crate) fn new(failure: Failure, sources: &Sources, logs: Vec<LogEntry>, cost: Cost) -> Self {
        Self { excerpt: failure.excerpt(sources), failure, logs, cost, version: None }
    }

    /// The same failure of functions of this version.
    pub(crate) fn of_version(self, version: Option<u32>) -> Self {
        Self { version, ..self }
    }
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", sanitize(&self.failure.to_string()))?;
        if f.alternate() {
            if let Some(excerpt) = &self.excerpt {
                write!(f, "\n{excerpt}")?;
            }
            for entry in &self.logs[self.logs.len().saturating_sub(LOGS_MAX)..] {
                let text: String = entry.fields.join(" ").chars().take(LOG_CHARS_MAX).collect();
                write!(f, "\nthe {} logged: {}", entry.slot.name(), sanitize(&text))?;
            }
        }
        Ok(())
    }
}
