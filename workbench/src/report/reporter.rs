//! The trait of all formats.

use super::{CodecReport, totals::Totals};
use crate::layout::BadInput;

/// Writes a report, as far as possible while the codecs run.
pub trait Reporter {
    /// The text for a codec.
    fn codec(&mut self, report: &CodecReport) -> String;

    /// The text at the end. `problems` are files and lines that could not be read.
    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String;
}
