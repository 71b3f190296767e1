//! Finds the message that makes a broker close connections, without losing any while the broker closes them anyway.
//!
//! A lost connection says little about the messages in flight. So with each loss, half as many are in flight, until a
//! connection is lost with a single one. Such a suspect is tried alone, behind other messages. If the broker confirms
//! these and closes the connection at the suspect, several times, then the suspect is the cause, and so is the next
//! message of its kind at its first loss. If the broker confirms nothing at all, it is the broker's fault, and messages
//! wait.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    num::NonZeroUsize,
    time::Duration,
};

use lru::LruCache;
use tokio::time::Instant;

/// Maximum number of messages in flight.
pub(super) const IN_FLIGHT_MAX: u16 = 4096;
/// Number of lost connections after which a suspect is given up. Only those count that had just confirmed another
/// message.
const LOSSES_MAX: usize = 3;
/// Maximum number of other messages sent between two trials.
const OTHERS_MAX: usize = 256;
/// Maximum number of kinds of messages that are remembered as causes.
const CAUSES_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// Numbers a message.
pub(super) type Number = u64;

/// Decides which messages may be sent, as far as lost connections tell.
pub(super) struct PoisonMessages {
    /// Those that may be poison messages.
    suspects: BTreeMap<Number, Suspect>,
    /// The suspects in the order of their trials.
    trials: VecDeque<Number>,
    /// The suspect that is in flight, alone.
    tried: Option<Number>,
    /// Number of other messages that may be sent before the next trial.
    others: usize,
    /// Maximum number of messages in flight now.
    window: usize,
    /// True if the broker has confirmed a message on this connection.
    has_confirmed: bool,
    /// Time since which connections have been lost without a message confirmed.
    fruitless_since: Option<Instant>,
    /// Time after which one message is given up in that case.
    wait_max: Duration,
    /// The kinds of messages that were causes, and when: the next one is a suspect from the start.
    causes: LruCache<String, Instant>,
}

struct Suspect {
    kind: String,
    /// Number of lost connections counted against it.
    losses: usize,
}

impl PoisonMessages {
    pub(super) fn new(wait_max: Duration) -> Self {
        Self {
            suspects: BTreeMap::new(),
            trials: VecDeque::new(),
            tried: None,
            others: OTHERS_MAX,
            window: IN_FLIGHT_MAX.into(),
            has_confirmed: false,
            fruitless_since: None,
            wait_max,
            causes: LruCache::new(CAUSES_MAX),
        }
    }

    /// Returns true if the broker has confirmed a message on this connection.
    pub(super) fn has_confirmed(&self) -> bool {
        self.has_confirmed
    }

    /// A new message, of a kind that the broker's access control treats alike.
    pub(super) fn add(&mut self, number: Number, kind: &str) {
        if !self.causes.is_empty() && self.causes.contains(kind) {
            self.suspect(number, kind);
        }
    }

    pub(super) fn is_suspect(&self, number: Number) -> bool {
        self.suspects.contains_key(&number)
    }

    /// A new connection.
    pub(super) fn start_again(&mut self) {
        (self.tried, self.others, self.has_confirmed) = (None, OTHERS_MAX, false);
    }

    /// The next message to send, if one may be sent. `others` are those that wait and are no suspects.
    pub(super) fn next(&self, others: &BTreeSet<Number>, in_flight: usize) -> Option<Number> {
        if self.tried.is_some() || in_flight >= self.window {
            return None;
        }
        let other = others.first().copied().filter(|_| self.is_turn_of_others(others.len(), in_flight));
        other.or_else(|| self.trials.front().copied().filter(|_| in_flight == 0))
    }

    /// Returns true if the next message is not a suspect. Each trial needs another message before it, so few others are
    /// sent one by one.
    fn is_turn_of_others(&self, waiting: usize, in_flight: usize) -> bool {
        match self.suspects.len() {
            0 => true,
            suspects if waiting <= suspects * LOSSES_MAX => !self.has_confirmed && in_flight == 0,
            _ => self.others > 0,
        }
    }

    pub(super) fn sent(&mut self, number: Number) {
        if self.is_suspect(number) {
            self.tried = Some(number);
        } else {
            self.others = self.others.saturating_sub(1);
        }
    }

    /// Takes note that the broker has confirmed a message, or refused it, in which case the broker works, too.
    pub(super) fn confirmed(&mut self, number: Number, kind: &str) {
        self.window = (self.window + 1).min(IN_FLIGHT_MAX.into());
        (self.has_confirmed, self.fruitless_since) = (true, None);
        if self.tried.take_if(|tried| *tried == number).is_some() {
            self.others = OTHERS_MAX;
        }
        self.forget(number);
        if !self.causes.is_empty() {
            self.causes.pop(kind);
        }
    }

    /// Forgets a message that needs no confirmation any more.
    pub(super) fn forget(&mut self, number: Number) {
        if self.suspects.remove(&number).is_some() {
            self.trials.retain(|suspect| *suspect != number);
        }
    }

    /// Takes note that the connection was lost with these messages in flight, each with its kind. Returns the one to
    /// give up.
    pub(super) fn lose(&mut self, in_flight: &[(Number, &str)]) -> Option<Number> {
        let given_up = match (self.tried.take(), in_flight) {
            (_, []) => None,
            (Some(tried), _) => self.accuse(tried),
            (None, [(number, kind)]) => {
                self.suspect(*number, kind);
                None
            }
            (None, more) => {
                self.window = more.len() / 2;
                None
            }
        };
        let given_up = given_up.or_else(|| if in_flight.is_empty() { None } else { self.oldest_that_waited() });
        given_up.inspect(|number| self.forget(*number))
    }

    /// Counts a loss against a suspect. Returns it if it is the cause.
    fn accuse(&mut self, number: Number) -> Option<Number> {
        let suspect = self.suspects.get_mut(&number)?;
        if self.has_confirmed {
            suspect.losses += 1;
        } else {
            // Another one may be confirmed, and show that the broker works.
            self.trials.rotate_left(1);
        }
        let is_recent = |since: &Instant| since.elapsed() < self.wait_max;
        let is_known = self.causes.get(&suspect.kind).is_some_and(is_recent);
        if !is_known && suspect.losses < LOSSES_MAX {
            return None;
        }
        if suspect.losses > 0 {
            self.causes.put(suspect.kind.clone(), Instant::now());
        }
        Some(number)
    }

    /// The oldest suspect, once the broker has confirmed nothing for long.
    fn oldest_that_waited(&mut self) -> Option<Number> {
        if self.has_confirmed {
            return None;
        }
        let since = *self.fruitless_since.get_or_insert_with(Instant::now);
        let oldest = self.suspects.keys().next().copied().filter(|_| since.elapsed() >= self.wait_max)?;
        self.fruitless_since = Some(Instant::now());
        Some(oldest)
    }

    fn suspect(&mut self, number: Number, kind: &str) {
        if let Entry::Vacant(entry) = self.suspects.entry(number) {
            entry.insert(Suspect { kind: kind.to_owned(), losses: 0 });
            self.trials.push_back(number);
        }
    }
}
