//! A device in a file, as it is read.

use crate::fields::{BadField, Cells};

/// A device in a file.
#[derive(Clone)]
pub struct Row {
    /// As spreadsheets count, also empty rows: the names are usually in row 1. In JSON, the first device is number 1.
    pub number: usize,
    pub(crate) cells: Result<Cells, BadField>,
}
