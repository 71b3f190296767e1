//! A table, in columns or as Markdown.

use runtime::sanitize;

use crate::report::format::markdown::cell;

/// Longer cells are cut in columns, so that rows stay rows.
const CELL_CHARS_MAX: usize = 48;

pub(super) struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(names: &[&str]) -> Self {
        Self { names: names.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Its names and rows, without characters that steer a terminal.
    pub(super) fn lines(&self) -> impl Iterator<Item = Vec<String>> {
        [&self.names].into_iter().chain(&self.rows).map(|row| row.iter().map(|cell| sanitize(cell)).collect())
    }

    /// In columns: the first begins at its left, the others end at their right.
    pub(super) fn text(&self) -> String {
        let lines: Vec<Vec<String>> = self.lines().map(|row| row.iter().map(|cell| short(cell)).collect()).collect();
        let width = |column: usize| lines.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max();
        let widths: Vec<usize> = (0..self.names.len()).map(|column| width(column).unwrap_or_default()).collect();
        let padded = |(column, (cell, width)): (usize, (&String, &usize))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        };
        let line = |row: &Vec<String>| {
            let cells: Vec<_> = row.iter().zip(&widths).enumerate().map(padded).collect();
            format!("  {}\n", cells.join("  ").trim_end())
        };
        lines.iter().map(line).collect()
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for (index, row) in self.lines().enumerate() {
            let cells: Vec<_> = row.iter().map(|text| cell(text)).collect();
            text += &format!("| {} |\n", cells.join(" | "));
            if index == 0 {
                text += &format!("|---|{}\n", "--:|".repeat(self.names.len().saturating_sub(1)));
            }
        }
        text
    }
}

fn short(cell: &str) -> String {
    match cell.chars().count() > CELL_CHARS_MAX {
        true => cell.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect(),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_texts_stay_in_their_cell() {
        let mut table = Table::new(&["name", "fuel"]);
        table.push(vec!["a|b\u{1b}".to_owned(), "1000".to_owned()]);
        table.push(vec!["µ".repeat(60), "7".to_owned()]);
        let text = table.text();
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [56, 56, 56], "{text}");
        assert!(text.contains("a|b\u{fffd}") && text.contains("µ…"), "{text}");
        let markdown = table.markdown();
        assert!(markdown.starts_with("| name | fuel |\n|---|--:|\n| a\\|b\u{fffd} | 1000 |\n"), "{markdown}");
    }
}
