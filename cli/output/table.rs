//! Rows of cells under named columns.

use clap::builder::styling::Style;
use serde_json::{Map, Value};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cell::Cell;
use crate::terminal::sanitize;

/// The space between columns.
const GAP: &str = "  ";
pub(super) const BOLD: Style = Style::new().bold();

/// The name of a column or property for programs, and for people. A column whose name for people is empty is for
/// programs only.
pub(crate) type Names = (&'static str, &'static str);

#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Names>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The first column identifies a row: it is never cut, and the only one that `--quiet` prints.
    pub(crate) fn new<const N: usize>(columns: [Names; N], rows: impl IntoIterator<Item = [Cell; N]>) -> Self {
        Self { columns: columns.into(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn first_column(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(|row| Some(row.first()?.text.as_str()))
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, _)| *name).collect()
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Vec<String>> {
        self.rows.iter().map(|row| row.iter().map(Cell::plain).collect())
    }

    pub(super) fn into_value(self) -> Value {
        let Self { columns, rows } = self;
        let names = || columns.iter().map(|(name, _)| (*name).to_owned());
        let object = |row: Vec<Cell>| names().zip(row.into_iter().map(|cell| cell.value)).collect::<Map<_, _>>();
        rows.into_iter().map(object).collect()
    }

    /// The titles, then a line per row, which is as long as `width` allows at most: cells are cut, from the last column
    /// to the second, and end in `…` then.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let is_shown = |(_, title): &&Names| !title.is_empty();
        let titles: Vec<_> = self.columns.iter().filter(is_shown).map(|(_, title)| (*title).to_owned()).collect();
        let shown = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&self.columns).filter(|(_, names)| is_shown(names));
            cells.map(|(cell, _)| sanitize(&cell.text)).collect::<Vec<_>>()
        };
        let rows: Vec<_> = self.rows.iter().map(shown).collect();
        let widths = widths(&titles, &rows, width);
        let mut text = format!("{BOLD}{}{BOLD:#}", line(&titles, &widths));
        for row in rows {
            text.push('\n');
            text += &line(&row, &widths);
        }
        text
    }
}

/// The widths of the columns, so that a line is not longer than `available` if titles and first column allow.
fn widths(titles: &[String], rows: &[Vec<String>], available: Option<usize>) -> Vec<usize> {
    let column = |index: usize| {
        rows.iter().map(move |row| row[index].width()).chain([titles[index].width()]).max().unwrap_or_default()
    };
    let mut widths: Vec<_> = (0..titles.len()).map(column).collect();
    let Some(available) = available else { return widths };
    let mut excess = (widths.iter().sum::<usize>() + GAP.len() * (titles.len() - 1)).saturating_sub(available);
    for (width, title) in widths.iter_mut().zip(titles).skip(1).rev() {
        let cut = excess.min(*width - title.width());
        *width -= cut;
        excess -= cut;
    }
    widths
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells: Vec<_> = cells.iter().zip(widths).map(|(cell, width)| fitted(cell, *width)).collect();
    cells.join(GAP).trim_end().to_owned()
}

/// `text`, cut or padded to `width`.
fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return format!("{text}{:1$}", "", width - text.width());
    }
    let mut cut = String::new();
    for character in text.chars() {
        if cut.width() + character.width().unwrap_or_default() >= width {
            break;
        }
        cut.push(character);
    }
    format!("{cut}…{:1$}", "", width - cut.width() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(width: Option<usize>) -> Vec<String> {
        let rows = [["a-device", "70B3D57ED0000001", "", "by the door"], ["b", "", "hidden", "温度 and more"]];
        let columns = [("id", "ID"), ("eui", "EUI"), ("hidden", ""), ("text", "Text")];
        let table = Table::new(columns, rows.map(|row| row.map(Cell::from)));
        anstream::adapter::strip_str(&table.text(width)).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn cells_are_cut_from_the_right_and_the_first_is_whole() {
        let whole = [
            "ID        EUI               Text",
            "a-device  70B3D57ED0000001  by the door",
            "b                           温度 and more",
        ];
        for width in [None, Some(80), Some(41)] {
            assert_eq!(lines(width), whole);
        }
        assert_eq!(lines(Some(33))[1..], ["a-device  70B3D57ED0000001  by t…", "b                           温度…"]);
        assert_eq!(lines(Some(24))[1..], ["a-device  70B3D57…  by …", "b                   温…"]);
        assert_eq!(lines(Some(1))[1..], ["a-device  70…  by …", "b              温…"]);
    }
}
