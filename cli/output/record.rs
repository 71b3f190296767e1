//! The properties of one thing, some of which may be tables.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    cell::Cell,
    table::{BOLD, Names, Table},
};
use crate::terminal::sanitize;

/// Width to which titles are aligned.
const TITLE_WIDTH: usize = 20;

#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    cells: Vec<(Names, Cell)>,
    tables: Vec<(&'static str, Table)>,
}

impl Record {
    pub(crate) fn new<const N: usize>(cells: [(Names, Cell); N]) -> Self {
        Self { cells: cells.into(), tables: Vec::new() }
    }

    /// Adds a property that has rows.
    pub(crate) fn with(mut self, name: &'static str, table: Table) -> Self {
        self.tables.push((name, table));
        self
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        let tables = self.tables.iter().map(|(name, _)| *name);
        self.cells.iter().map(|((name, _), _)| *name).chain(tables).collect()
    }

    pub(super) fn values(self) -> Vec<String> {
        let tables = self.tables.into_iter().map(|(_, table)| table.into_value().to_string());
        self.cells.iter().map(|(_, cell)| cell.plain()).chain(tables).collect()
    }

    /// The properties that are not empty, with their titles.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let rows = self.cells.iter().map(|((_, title), cell)| (*title, cell.text.as_str()));
        rows.filter(|(_, text)| !text.is_empty())
    }

    /// The object for programs.
    pub(crate) fn into_value(self) -> Value {
        let cells = self.cells.into_iter().map(|((name, _), cell)| (name.to_owned(), cell.value));
        let tables = self.tables.into_iter().map(|(name, table)| (name.to_owned(), table.into_value()));
        Value::Object(cells.chain(tables).collect::<Map<_, _>>())
    }

    /// A line for each property that is not empty, then the tables.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        for (title, value) in self.rows() {
            _ = writeln!(text, "{BOLD}{title:>TITLE_WIDTH$}:{BOLD:#} {}", sanitize(value));
        }
        for (_, table) in self.tables.iter().filter(|(_, table)| !table.is_empty()) {
            _ = writeln!(text, "{}", table.text(width));
        }
        text.truncate(text.trim_end().len());
        text
    }
}
