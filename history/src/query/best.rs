//! The first records of a page, gathered from sources in any order.

use std::collections::BTreeMap;

use crate::{Record, RecordId};

/// The first records in the order of a query: at most so many, and of at most so many bytes, but at least one. A record
/// that is in two sources is there once.
#[derive(Debug)]
pub(crate) struct Best {
    limit: usize,
    oldest_first: bool,
    bytes: usize,
    bytes_max: usize,
    /// True if some were left out for their bytes.
    is_cut: bool,
    records: BTreeMap<RecordId, Record>,
}

/// The records of a page, in the order of the query.
pub(crate) struct BestRecords {
    pub(crate) records: Vec<Record>,
    /// True if some were left out for their bytes.
    pub(crate) is_cut: bool,
}

/// The id that a record must come before to be among the best. None while there is room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    id: Option<RecordId>,
    oldest_first: bool,
}

impl Bound {
    /// Returns true if a record with this id would be among the best.
    pub(crate) fn admits(self, id: RecordId) -> bool {
        match self.id {
            None => true,
            Some(bound) if self.oldest_first => id < bound,
            Some(bound) => id > bound,
        }
    }

    /// Returns true if a record with an id from `first` to `last` could be among the best.
    pub(crate) fn admits_any(self, first: RecordId, last: RecordId) -> bool {
        self.admits(if self.oldest_first { first } else { last })
    }
}

impl Best {
    pub(crate) fn new(limit: usize, bytes_max: usize, oldest_first: bool) -> Self {
        Self { limit: limit.max(1), oldest_first, bytes: 0, bytes_max, is_cut: false, records: BTreeMap::new() }
    }

    pub(crate) fn bound(&self) -> Bound {
        let has_room = self.records.len() < self.limit && !self.is_cut;
        let worst = if self.oldest_first { self.records.last_key_value() } else { self.records.first_key_value() };
        Bound { id: worst.map(|(id, _)| *id).filter(|_| !has_room), oldest_first: self.oldest_first }
    }

    /// Returns the maximum number of records.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds a record that the bound admits.
    pub(crate) fn insert(&mut self, record: Record) {
        self.bytes += record.memory_bytes();
        if let Some(same) = self.records.insert(record.id, record) {
            self.bytes -= same.memory_bytes();
        }
        while self.records.len() > self.limit || (self.bytes > self.bytes_max && self.records.len() > 1) {
            self.is_cut |= self.records.len() <= self.limit;
            let worst = if self.oldest_first { self.records.pop_last() } else { self.records.pop_first() };
            self.bytes -= worst.map_or(0, |(_, worst)| worst.memory_bytes());
        }
    }

    /// Puts the records in the order of the query.
    pub(crate) fn into_records(self) -> BestRecords {
        let records = self.records.into_values();
        let records = if self.oldest_first { records.collect() } else { records.rev().collect() };
        BestRecords { records, is_cut: self.is_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NewRecord, record::View};

    fn record(millis: u64) -> Record {
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "my-device".parse().unwrap());
        let new = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, types::Timestamp::default());
        View::of_new(RecordId::new(millis, 0, 0), &new).to_record().unwrap()
    }

    fn gathered(limit: usize, bytes_max: usize, oldest_first: bool) -> (Vec<u64>, bool) {
        let mut best = Best::new(limit, bytes_max, oldest_first);
        for millis in [5, 1, 4, 4, 2, 3, 5] {
            if best.bound().admits(RecordId::new(millis, 0, 0)) {
                best.insert(record(millis));
            }
        }
        let BestRecords { records, is_cut } = best.into_records();
        (records.iter().map(|record| record.id.millis).collect(), is_cut)
    }

    #[test]
    fn the_first_in_order_remain_and_each_is_there_once() {
        assert_eq!(gathered(3, usize::MAX, false), (vec![5, 4, 3], false));
        assert_eq!(gathered(3, usize::MAX, true), (vec![1, 2, 3], false));
        assert_eq!(gathered(9, usize::MAX, true), (vec![1, 2, 3, 4, 5], false));
    }

    #[test]
    fn fewer_remain_when_they_are_large_but_one_always() {
        let size = record(1).memory_bytes();
        assert_eq!(gathered(9, 2 * size, false), (vec![5, 4], true));
        assert_eq!(gathered(9, 0, true), (vec![1], true));
    }
}
