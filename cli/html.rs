//! Figures on pages of reports. Their templates are in `cli/templates`.

/// A part of a bar: its class in `web/templates/report.css`, its name and its number.
pub(crate) type Part = (&'static str, &'static str, u64);

/// `part` in percent of `whole`.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
