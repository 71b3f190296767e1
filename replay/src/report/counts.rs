//! Counts of uplinks by result.

use serde::Serialize;

use crate::check::Verdict;

/// Number of uplinks by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Uplinks that ran.
    pub uplinks: u64,
    /// The result is the object that was stored; or there is neither.
    pub equal: u64,
    /// The result differs.
    pub changed: u64,
    /// They fail, and were decoded before.
    pub newly_failing: u64,
    /// They are decoded, and were not before.
    pub newly_decoded: u64,
    /// They fail, and were not decoded before either.
    pub still_failing: u64,
}

/// Number of statements of SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UpdateCounts {
    /// Rows that get a new object.
    pub written: u64,
    /// Rows whose new object PostgreSQL cannot store: it has a NUL character, or half of a surrogate pair.
    pub not_storable: u64,
}

impl Counts {
    pub(super) fn of(verdict: &Verdict) -> Self {
        let mut counts = Self { uplinks: 1, ..Self::default() };
        *match verdict {
            Verdict::Equal => &mut counts.equal,
            Verdict::Changed(_) => &mut counts.changed,
            Verdict::NewlyFailing(_) => &mut counts.newly_failing,
            Verdict::NewlyDecoded => &mut counts.newly_decoded,
            Verdict::StillFailing(_) => &mut counts.still_failing,
        } = 1;
        counts
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.uplinks += other.uplinks;
        self.equal += other.equal;
        self.changed += other.changed;
        self.newly_failing += other.newly_failing;
        self.newly_decoded += other.newly_decoded;
        self.still_failing += other.still_failing;
    }
}

impl UpdateCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.written += other.written;
        self.not_storable += other.not_storable;
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
