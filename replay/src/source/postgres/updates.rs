//! Statements of SQL that put new objects into a table, for a person to read before they run.

use std::io::Write;

use super::Table;
use crate::{
    RecordedUplink, UpdateCounts,
    check::{Checked, Verdict},
};

/// Writes statements for a table.
#[derive(Clone, Debug)]
pub struct Updates {
    table: String,
}

impl Updates {
    /// Statements for `table`.
    pub fn new(table: &Table) -> Self {
        Self { table: table.quoted() }
    }

    /// Returns the text before all statements: they take effect together or not at all. `notes` are lines of a comment.
    pub fn begin(&self, notes: &[String]) -> String {
        let mut text = String::new();
        for note in notes {
            text += &format!("-- {}\n", note.replace(|character: char| character.is_control(), " "));
        }
        text += "-- A row that has changed since it was read is left alone, so this can run twice.\n";
        text + "BEGIN;\nSET LOCAL standard_conforming_strings = on;\n"
    }

    /// Returns the text after all statements.
    pub fn end(&self, counts: UpdateCounts) -> String {
        let mut text = format!("-- {} rows\n", counts.written);
        if counts.not_storable > 0 {
            text += &format!("-- {} more rows have objects that PostgreSQL cannot store\n", counts.not_storable);
        }
        text + "COMMIT;\n"
    }

    /// Adds the statement of a row that has another object now. It does not touch one that newly fails.
    pub(crate) fn write(&self, out: &mut Vec<u8>, uplink: &RecordedUplink, checked: &Checked) -> UpdateCounts {
        let new = match (&checked.verdict, &checked.object) {
            (Verdict::Changed(_) | Verdict::NewlyDecoded, Some(object)) => object.get(),
            _ => return UpdateCounts::default(),
        };
        if uplink.id.is_empty() || !is_storable(new) {
            return UpdateCounts { not_storable: 1, ..UpdateCounts::default() };
        }
        let old = match &uplink.object {
            Some(old) => format!("object = {}::jsonb", quoted(old.get())),
            None => "(object IS NULL OR object = 'null'::jsonb)".to_owned(),
        };
        let (table, new, id) = (&self.table, quoted(new), quoted(&uplink.id));
        // Writing to memory cannot fail.
        _ = writeln!(out, "UPDATE {table} SET object = {new}::jsonb WHERE deduplication_id = {id} AND {old};");
        UpdateCounts { written: 1, ..UpdateCounts::default() }
    }
}

/// Returns true if `jsonb` can store an object: it has no NUL character and no half of a surrogate pair.
fn is_storable(json: &str) -> bool {
    !json.contains("\\u0000") && serde_json::from_str::<serde_json::Value>(json).is_ok()
}

/// A string of standard SQL, in which a backslash is an ordinary character.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
