//! The first records of a page, gathered from sources in any order.

use std::collections::BTreeMap;

use crate::{Record, RecordId};

/// The first records in the order of a query, at most so many. A record that is in two sources is there once.
#[derive(Debug)]
pub(crate) struct Best {
    limit: usize,
    oldest_first: bool,
    records: BTreeMap<RecordId, Record>,
}

impl Best {
    pub(crate) fn new(limit: usize, oldest_first: bool) -> Self {
        Self { limit, oldest_first, records: BTreeMap::new() }
    }

    /// The id that a record must come before to be among them. None while there is room.
    fn bound(&self) -> Option<RecordId> {
        if self.records.len() < self.limit {
            return None;
        }
        let bound = if self.oldest_first { self.records.last_key_value() } else { self.records.first_key_value() };
        bound.map(|(id, _)| *id)
    }

    /// Whether a record with this id would be among them.
    pub(crate) fn admits(&self, id: RecordId) -> bool {
        match self.bound() {
            None => self.limit > 0,
            Some(bound) if self.oldest_first => id < bound,
            Some(bound) => id > bound,
        }
    }

    /// Whether one of the ids from `first` to `last` would be.
    pub(crate) fn admits_any(&self, first: RecordId, last: RecordId) -> bool {
        self.admits(if self.oldest_first { first } else { last })
    }

    /// Adds a record that it admits.
    pub(crate) fn insert(&mut self, record: Record) {
        self.records.insert(record.id, record);
        if self.records.len() > self.limit {
            if self.oldest_first {
                self.records.pop_last()
            } else {
                self.records.pop_first()
            };
        }
    }

    /// The records in the order of the query.
    pub(crate) fn into_records(self) -> Vec<Record> {
        let records = self.records.into_values();
        if self.oldest_first { records.collect() } else { records.rev().collect() }
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

    fn gathered(oldest_first: bool) -> Vec<u64> {
        let mut best = Best::new(3, oldest_first);
        for millis in [5, 1, 4, 4, 2, 3, 5] {
            if best.admits(RecordId::new(millis, 0, 0)) {
                best.insert(record(millis));
            }
        }
        best.into_records().iter().map(|record| record.id.millis).collect()
    }

    #[test]
    fn the_first_in_order_remain_and_each_is_there_once() {
        assert_eq!(gathered(false), [5, 4, 3]);
        assert_eq!(gathered(true), [1, 2, 3]);
    }
}
