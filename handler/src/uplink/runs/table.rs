//! The applications that are counted, within a bound that no user can use up to the loss of others.

use std::collections::HashMap;

use lru::LruCache;
use server::ledger::Owner;
use types::{AppId, Timestamp};

use super::sums::{Converted, HalfHour, Record};

/// Maximum number of applications. Together, they take about 1.5 MB.
pub(super) const APPLICATIONS_MAX: usize = 4096;

/// The applications that are counted. When there are too many, the user with the most loses the least recently used.
///
/// Those whose users are not known count as those of one user: somebody may make many of them before anybody knows.
pub(super) struct Table {
    places: LruCache<AppId, Place>,
    /// Number of applications of each user. Nobody has none.
    held: HashMap<Option<Owner>, usize>,
}

struct Place {
    user: Option<Owner>,
    record: Record,
}

impl Table {
    pub(super) fn new() -> Self {
        // Not made with its bound, for which it would take the memory at once.
        Self { places: LruCache::unbounded(), held: HashMap::new() }
    }

    /// Counts an uplink, unless its user has to be looked up before: of a new application, and then once in half an
    /// hour, because the user may not have been known, and applications are handed over.
    pub(super) fn count(&mut self, app_id: &AppId, uplink: Converted, now: Timestamp) -> bool {
        match self.places.get_mut(app_id).filter(|place| place.record.is_of(HalfHour::of(now))) {
            Some(place) => {
                place.record.count(uplink, now);
                true
            }
            None => false,
        }
    }

    /// Counts an uplink of an application of this user.
    pub(super) fn count_for(&mut self, user: Option<Owner>, app_id: &AppId, uplink: Converted, now: Timestamp) {
        let mut record = self.remove(app_id).unwrap_or_else(|| {
            self.make_room();
            Record::default()
        });
        record.count(uplink, now);
        *self.held.entry(user.clone()).or_default() += 1;
        self.places.put(app_id.clone(), Place { user, record });
    }

    pub(super) fn records(&self) -> impl Iterator<Item = (&AppId, &Record)> {
        self.places.iter().map(|(app_id, place)| (app_id, &place.record))
    }

    fn make_room(&mut self) {
        if self.places.len() < APPLICATIONS_MAX {
            return;
        }
        let most = self.held.values().max();
        let mut oldest_first = self.places.iter().rev();
        let found = oldest_first.find(|(_, place)| self.held.get(&place.user) == most);
        if let Some(app_id) = found.map(|(app_id, _)| app_id.clone()) {
            self.remove(&app_id);
        }
    }

    fn remove(&mut self, app_id: &AppId) -> Option<Record> {
        let Place { user, record } = self.places.pop(app_id)?;
        if let Some(held) = self.held.get_mut(&user) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&user);
            }
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::cost::Cost;

    const UPLINK: Converted = Converted { failure: None, cost: Cost { fuel: 1, elapsed: std::time::Duration::ZERO } };

    fn id(number: usize) -> AppId {
        format!("app-{number}").parse().unwrap()
    }

    fn user(number: usize) -> Option<Owner> {
        Some(Owner::User(number.to_string().into()))
    }

    fn add(table: &mut Table, number: usize, user: Option<Owner>) {
        table.count_for(user, &id(number), UPLINK, Timestamp::default());
    }

    fn has(table: &Table, number: usize) -> bool {
        table.places.contains(&id(number))
    }

    #[test]
    fn an_application_is_known_until_the_half_hour_is_over() {
        let mut table = Table::new();
        let later = Timestamp::from_millis(1_800_000);
        assert!(!table.count(&id(1), UPLINK, Timestamp::default()));
        add(&mut table, 1, None);
        assert!(table.count(&id(1), UPLINK, Timestamp::default()) && !table.count(&id(1), UPLINK, later));
        table.count_for(user(1), &id(1), UPLINK, later);
        assert!(table.count(&id(1), UPLINK, later));
        let uplinks: Vec<_> = table.records().map(|(_, record)| record.total().uplinks).collect();
        assert_eq!(uplinks, [4]);
        assert_eq!(table.held, HashMap::from([(user(1), 1)]));
    }

    #[test]
    fn of_users_with_as_many_applications_the_least_recently_used_goes_first() {
        let mut table = Table::new();
        (0..APPLICATIONS_MAX).for_each(|number| add(&mut table, number, user(number)));
        assert!(table.count(&id(0), UPLINK, Timestamp::default()));
        add(&mut table, APPLICATIONS_MAX, user(APPLICATIONS_MAX));
        assert!(has(&table, 0) && !has(&table, 1) && has(&table, APPLICATIONS_MAX));
        assert_eq!((table.places.len(), table.held.len()), (APPLICATIONS_MAX, APPLICATIONS_MAX), "nothing is left");
    }

    #[test]
    fn applications_of_unknown_users_crowd_out_each_other() {
        let mut table = Table::new();
        (0..5).for_each(|number| add(&mut table, number, user(1)));
        (5..APPLICATIONS_MAX + 7).for_each(|number| add(&mut table, number, None));
        assert!((0..5).all(|number| has(&table, number)));
        assert!(!has(&table, 11) && has(&table, 12));
        assert_eq!(table.held, HashMap::from([(user(1), 5), (None, APPLICATIONS_MAX - 5)]));
    }
}
