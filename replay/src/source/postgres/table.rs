//! The name of a table.

use std::{fmt, str::FromStr};

/// A table, maybe with its schema: `event_up`, or `public.event_up`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Vec<String>);

impl Default for Table {
    /// The one that ChirpStack creates.
    fn default() -> Self {
        Self(vec!["event_up".to_owned()])
    }
}

impl FromStr for Table {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<_> = text.split('.').map(str::to_owned).collect();
        let is_name = |part: &String| !part.is_empty() && !part.contains(|character: char| character.is_control());
        match parts.len() <= 2 && parts.iter().all(is_name) {
            true => Ok(Self(parts)),
            false => Err("a table is a name, maybe with its schema, as in public.event_up"),
        }
    }
}

impl Table {
    /// The name as SQL quotes it.
    pub(super) fn quoted(&self) -> String {
        self.0.iter().map(|part| format!("\"{}\"", part.replace('"', "\"\""))).collect::<Vec<_>>().join(".")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("."))
    }
}
