//! The applications that are counted, within a bound that no user can use up to the loss of others.

use std::collections::HashMap;

use lru::LruCache;
use server::ledger::Owner;
use types::{AppId, Timestamp};

use super::sums::{ApplicationSums, Converted, HalfHour};

/// Maximum number of applications. Together, they take about 1.5 MB.
pub(super) const APPLICATIONS_MAX: usize = 4096;
/// Number of applications that may make room for a new one, the least recently used. An uplink waits while they are
/// compared.
const VICTIMS_MAX: usize = 64;
/// A user makes room for others who have at least so many applications fewer. With one fewer, both would take turns.
const EXCESS_MIN: usize = 2;

/// The applications that are counted. When there are too many, a new one is left out, unless another one is idle or
/// belongs to a user who has more: those that are counted keep their counts, however many take turns.
///
/// Those whose users are not known count as those of one user: somebody may make many of them before anybody knows.
pub(super) struct Table {
    entries: LruCache<AppId, TableEntry>,
    /// Number of applications of each user. Nobody has none.
    held: HashMap<Option<Owner>, usize>,
    /// The uplinks of applications that have no place, also those from before they lost it.
    left_out: ApplicationSums,
}

struct TableEntry {
    user: Option<Owner>,
    sums: ApplicationSums,
}

impl Table {
    pub(super) fn new() -> Self {
        // Not made with its bound, for which it would take the memory at once.
        Self { entries: LruCache::unbounded(), held: HashMap::new(), left_out: ApplicationSums::default() }
    }

    /// Counts an uplink, unless its user has to be looked up before: of a new application, and then once in half an
    /// hour, because the user may not have been known, and applications are handed over.
    pub(super) fn count(&mut self, app_id: &AppId, uplink: Converted, now: Timestamp) -> bool {
        match self.entries.get_mut(app_id).filter(|entry| entry.sums.is_of(HalfHour::of(now))) {
            Some(entry) => {
                entry.sums.count(uplink, now);
                true
            }
            None => false,
        }
    }

    /// Counts an uplink of an application of this user, if there is room for the application.
    pub(super) fn count_for(&mut self, user: Option<Owner>, app_id: &AppId, uplink: Converted, now: Timestamp) {
        let found = self.remove(app_id);
        if found.is_none() && !self.make_room(&user, HalfHour::of(now)) {
            self.left_out.count(uplink, now);
            return;
        }
        let mut sums = found.unwrap_or_default();
        sums.count(uplink, now);
        *self.held.entry(user.clone()).or_default() += 1;
        self.entries.put(app_id.clone(), TableEntry { user, sums });
    }

    /// The applications with their users, as far as these are known.
    pub(super) fn sums(&self) -> impl Iterator<Item = (&AppId, Option<&Owner>, &ApplicationSums)> {
        self.entries.iter().map(|(app_id, entry)| (app_id, entry.user.as_ref(), &entry.sums))
    }

    /// Number of uplinks of applications without a place in the window that this half hour ends.
    pub(super) fn uplinks_left_out(&self, half_hour: HalfHour) -> u64 {
        self.left_out.recent(half_hour).uplinks
    }

    /// Returns true if there is a place for an application of this user, which another one may have lost.
    fn make_room(&mut self, user: &Option<Owner>, half_hour: HalfHour) -> bool {
        if self.entries.len() < APPLICATIONS_MAX {
            return true;
        }
        let Some(sums) = self.victim(user, half_hour).and_then(|app_id| self.remove(&app_id)) else { return false };
        self.left_out.absorb(sums, half_hour);
        true
    }

    /// The application that makes room for one of this user: an idle one, or else one of the user with the most.
    fn victim(&self, user: &Option<Owner>, half_hour: HalfHour) -> Option<AppId> {
        let held = |user: &Option<Owner>| self.held.get(user).copied().unwrap_or_default();
        let rank = |entry: &TableEntry| if entry.sums.is_idle(half_hour) { usize::MAX } else { held(&entry.user) };
        let oldest_first = self.entries.iter().rev().take(VICTIMS_MAX);
        let ranked = oldest_first.map(|(app_id, entry)| (rank(entry), app_id));
        let (rank, app_id) = ranked.reduce(|first, other| if other.0 > first.0 { other } else { first })?;
        (rank >= held(user) + EXCESS_MIN).then(|| app_id.clone())
    }

    fn remove(&mut self, app_id: &AppId) -> Option<ApplicationSums> {
        let TableEntry { user, sums } = self.entries.pop(app_id)?;
        if let Some(held) = self.held.get_mut(&user) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&user);
            }
        }
        Some(sums)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::status::cost::Cost;

    const UPLINK: Converted = Converted { failure: None, cost: Cost { fuel: 1, elapsed: Duration::ZERO } };
    const HALF_HOUR: Duration = Duration::from_secs(1800);

    fn id(number: usize) -> AppId {
        format!("app-{number}").parse().unwrap()
    }

    fn user(number: usize) -> Option<Owner> {
        Some(Owner::User(number.to_string().into()))
    }

    fn half_hour(number: u32) -> HalfHour {
        HalfHour::of(Timestamp::default().plus(HALF_HOUR * number))
    }

    fn add(table: &mut Table, number: usize, user: Option<Owner>) {
        table.count_for(user, &id(number), UPLINK, Timestamp::default());
    }

    fn has(table: &Table, number: usize) -> bool {
        table.entries.contains(&id(number))
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
        let uplinks: Vec<_> = table.sums().map(|(_, _, sums)| sums.total().uplinks).collect();
        assert_eq!(uplinks, [4]);
        assert_eq!(table.held, HashMap::from([(user(1), 1)]));
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn more_applications_than_places_do_not_take_turns() {
        let mut table = Table::new();
        for number in (0..APPLICATIONS_MAX + 100).cycle().take(3 * (APPLICATIONS_MAX + 100)) {
            if !table.count(&id(number), UPLINK, Timestamp::default()) {
                add(&mut table, number, user(number));
            }
        }
        assert!(table.sums().all(|(_, _, sums)| sums.total().uplinks == 3));
        assert!(has(&table, 0) && has(&table, APPLICATIONS_MAX - 1) && !has(&table, APPLICATIONS_MAX));
        let left_out = [0, 1, 2].map(|number| table.uplinks_left_out(half_hour(number)));
        assert_eq!((table.entries.len(), left_out), (APPLICATIONS_MAX, [300, 300, 0]));
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn an_application_that_was_idle_for_two_half_hours_makes_room() {
        let mut table = Table::new();
        (0..APPLICATIONS_MAX).for_each(|number| add(&mut table, number, user(number)));
        table.count_for(user(0), &id(0), UPLINK, Timestamp::default().plus(HALF_HOUR));
        let new = APPLICATIONS_MAX;
        table.count_for(user(new), &id(new), UPLINK, Timestamp::default().plus(HALF_HOUR));
        assert!(!has(&table, new), "all others had uplinks in the half hour before");
        table.count_for(user(new), &id(new), UPLINK, Timestamp::default().plus(HALF_HOUR * 2));
        assert!(has(&table, 0) && !has(&table, 1) && has(&table, new));
        assert_eq!((table.entries.len(), table.held.len()), (APPLICATIONS_MAX, APPLICATIONS_MAX), "nothing is left");
        assert_eq!(table.uplinks_left_out(half_hour(2)), 1, "that of the new one, when there was no room");
    }

    // Conformance: Failures, fuel and time of functions are counted by application
    #[test]
    fn users_make_room_for_those_who_have_at_least_two_fewer() {
        let mut table = Table::new();
        (0..APPLICATIONS_MAX).for_each(|number| add(&mut table, number, user(number % 2)));
        let new = APPLICATIONS_MAX;
        add(&mut table, new, user(0));
        assert!(!has(&table, new), "both have as many");
        add(&mut table, new, user(2));
        assert!(!has(&table, 0) && has(&table, new), "one of the two loses its least recently used");
        add(&mut table, new + 1, user(0));
        assert!(!has(&table, new + 1), "the first would have as many as the second had");
        add(&mut table, new + 1, user(3));
        assert!(!has(&table, 1) && has(&table, 2) && has(&table, new + 1), "the second has the most");
        let half = APPLICATIONS_MAX / 2 - 1;
        assert_eq!(table.held, HashMap::from([(user(0), half), (user(1), half), (user(2), 1), (user(3), 1)]));
        assert_eq!(table.uplinks_left_out(half_hour(0)), 2 + 2, "also those of applications that made room");
    }

    #[test]
    fn only_the_least_recently_used_are_compared() {
        let mut table = Table::new();
        (0..VICTIMS_MAX).for_each(|number| add(&mut table, number, user(number)));
        (VICTIMS_MAX..APPLICATIONS_MAX).for_each(|number| add(&mut table, number, None));
        let new = APPLICATIONS_MAX;
        add(&mut table, new, user(new));
        assert!(!has(&table, new));
        assert!(table.count(&id(0), UPLINK, Timestamp::default()));
        add(&mut table, new, user(new));
        assert!(!has(&table, VICTIMS_MAX) && has(&table, new));
    }

    #[test]
    fn applications_of_unknown_users_count_as_those_of_one() {
        let mut table = Table::new();
        (0..5).for_each(|number| add(&mut table, number, user(1)));
        (5..APPLICATIONS_MAX + 7).for_each(|number| add(&mut table, number, None));
        assert!((0..APPLICATIONS_MAX).all(|number| has(&table, number)));
        add(&mut table, APPLICATIONS_MAX, user(1));
        assert!((0..5).all(|number| has(&table, number)) && !has(&table, 5) && has(&table, APPLICATIONS_MAX));
        assert_eq!(table.held, HashMap::from([(user(1), 6), (None, APPLICATIONS_MAX - 6)]));
    }
}
