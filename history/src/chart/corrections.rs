//! Corrections of uplinks: the newest revision of each, in a bounded number of bytes.

use std::collections::BTreeMap;

use crate::{Outcome, Record, RecordId};

/// Bytes of the corrections of a chart. Those of the oldest uplinks are given up, and their uplinks with them.
const BYTES_MAX: usize = 32 << 20;
/// About the bytes that a correction needs beside its result.
const CORRECTION_BYTES: usize = 64;

/// The newest corrections, by the uplinks that they correct.
#[derive(Debug)]
pub(crate) struct Corrections {
    newest: BTreeMap<RecordId, Correction>,
    bytes: usize,
    bytes_max: usize,
    /// Uplinks before this one may have been corrected to something else than is known here.
    from: RecordId,
}

/// The correction of an uplink.
#[derive(Debug)]
struct Correction {
    revision: u32,
    outcome: Outcome,
    result: Box<str>,
}

impl Correction {
    fn bytes(&self) -> usize {
        CORRECTION_BYTES + self.result.len()
    }
}

impl Default for Corrections {
    fn default() -> Self {
        Self { newest: BTreeMap::new(), bytes: 0, bytes_max: BYTES_MAX, from: RecordId::first(0) }
    }
}

impl Corrections {
    /// Adds a correction, unless a newer one is known.
    pub(crate) fn add(&mut self, record: Record) {
        let Record { corrects: Some(id), revision, outcome, result, .. } = record else { return };
        if id < self.from || self.newest.get(&id).is_some_and(|known| known.revision >= revision) {
            return;
        }
        let correction = Correction { revision, outcome, result: result.into() };
        self.bytes += correction.bytes();
        self.bytes -= self.newest.insert(id, correction).map_or(0, |older| older.bytes());
        while self.bytes > self.bytes_max
            && let Some((oldest, given_up)) = self.newest.pop_first()
        {
            self.bytes -= given_up.bytes();
            self.from = oldest.next();
        }
    }

    /// The first uplink of which all is known.
    pub(crate) fn from(&self) -> RecordId {
        self.from
    }

    /// The outcome and the result of an uplink as they are now, from those that it had first.
    pub(crate) fn current<'a>(&'a self, id: RecordId, outcome: Outcome, result: &'a str) -> (Outcome, &'a str) {
        let newest = self.newest.get(&id);
        newest.map_or((outcome, result), |newest| (newest.outcome, &*newest.result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NewRecord, record::View};

    fn correction(of: u64, revision: u32, result: &str) -> Record {
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "a1".parse().unwrap());
        let id = RecordId::new(1000, 0, revision);
        let corrects = Some(RecordId::new(of, 0, 0));
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded());
        let new = NewRecord { revision, corrects, outcome: Outcome::Decoded, result, ..plain };
        View::of_new(id, &new).to_record().unwrap()
    }

    #[test]
    fn the_newest_revision_counts_whatever_the_order() {
        let mut corrections = Corrections::default();
        for (of, revision, result) in [(1, 2, "b"), (1, 1, "a"), (2, 1, "c"), (2, 2, "d")] {
            corrections.add(correction(of, revision, result));
        }
        let current = |millis| corrections.current(RecordId::new(millis, 0, 0), Outcome::Failed, "first");
        assert_eq!(current(1), (Outcome::Decoded, "b"));
        assert_eq!(current(2), (Outcome::Decoded, "d"));
        assert_eq!(current(3), (Outcome::Failed, "first"));
        assert_eq!(corrections.from(), RecordId::first(0));
    }

    #[test]
    fn too_many_corrections_leave_those_of_the_newest_uplinks() {
        let mut corrections = Corrections { bytes_max: 2 * (CORRECTION_BYTES + 1), ..Corrections::default() };
        for of in [4, 2, 3, 1] {
            corrections.add(correction(of, 1, "x"));
        }
        assert_eq!(corrections.from(), RecordId::new(2, 0, 0).next());
        let current = |millis| corrections.current(RecordId::new(millis, 0, 0), Outcome::Failed, "").0;
        assert_eq!([1, 2, 3, 4].map(current), [Outcome::Failed, Outcome::Failed, Outcome::Decoded, Outcome::Decoded]);
        assert_eq!(corrections.bytes, corrections.bytes_max);
    }
}
