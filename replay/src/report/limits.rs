//! Maximum sizes of the parts of a report.

/// Maximum number of fields.
pub(super) const FIELDS_MAX: usize = 1000;
/// Maximum number of different failures.
pub(super) const FAILURES_MAX: usize = 100;
/// Maximum number of examples of what is decoded now.
pub(super) const EXAMPLES_MAX: usize = 8;
/// Maximum number of damaged places that are named.
pub(super) const DAMAGES_MAX: usize = 20;
/// Maximum number of profiles, and of those without a codec.
pub(super) const PROFILES_MAX: usize = 100;
/// Maximum number of days.
pub(super) const DAYS_MAX: usize = 4000;
