//! Subscriptions at the broker: those that listeners need, and no others.

use std::collections::{BTreeMap, HashMap};

use link::mqtt::BrokerConnection;
use tokio::sync::oneshot;
use types::{AppId, Kind};

use super::{downlinks::IN_FLIGHT_MAX, topics::covers};
use crate::{Error, Result};

/// The subscriptions of a connection. No two of them overlap, because brokers may deliver a message once for each.
#[derive(Debug)]
pub(super) struct Subscriptions {
    app_id: AppId,
    /// Filters, with a flag that is true once the broker has granted them.
    held: BTreeMap<String, bool>,
    /// Filters that the broker has not answered, by the numbers of their packets.
    packets: HashMap<u16, String>,
    last_packet: u16,
    waiting: Vec<WaitingListener>,
}

/// A listener that waits for its subscription.
#[derive(Debug)]
struct WaitingListener {
    filters: Vec<String>,
    done: oneshot::Sender<Result<()>>,
}

impl Subscriptions {
    pub(super) fn new(app_id: AppId) -> Self {
        let (held, packets) = (BTreeMap::new(), HashMap::new());
        Self { app_id, held, packets, last_packet: IN_FLIGHT_MAX, waiting: Vec::new() }
    }

    /// A new connection has no subscriptions, or those of its session, which can be requested again.
    pub(super) fn reset(&mut self) {
        self.held.clear();
        self.packets.clear();
    }

    /// Answers `done` when all filters are granted or one is refused.
    pub(super) fn wait(&mut self, filters: &[String], done: oneshot::Sender<Result<()>>) {
        self.waiting.push(WaitingListener { filters: filters.to_owned(), done });
    }

    /// Subscribes to the wanted filters, and unsubscribes from all others.
    pub(super) fn update(&mut self, wanted: &[String], connection: &mut BrokerConnection) {
        let wanted = widest(wanted);
        let added: Vec<_> = wanted.iter().filter(|filter| !self.held.contains_key(**filter)).collect();
        // In this order, so that no message is missed in between.
        for filter in added {
            let packet = next_packet(&mut self.last_packet);
            if connection.subscribe(packet, &[format!("{}/{filter}", self.app_id)]).is_ok() {
                self.held.insert((*filter).to_owned(), false);
                self.packets.insert(packet, (*filter).to_owned());
            }
        }
        let Self { app_id, held, last_packet, .. } = self;
        held.retain(|filter, _| {
            let mut end = || connection.unsubscribe(next_packet(last_packet), &[format!("{app_id}/{filter}")]);
            wanted.contains(&filter.as_str()) || end().is_err()
        });
        self.settle();
    }

    /// Takes the broker's answer. An error is one that nobody waits for.
    pub(super) fn answered(&mut self, packet: u16, granted: bool) -> Result<()> {
        let Some(filter) = self.packets.remove(&packet) else { return Ok(()) };
        if granted {
            if let Some(is_granted) = self.held.get_mut(&filter) {
                *is_granted = true;
            }
            self.settle();
            return Ok(());
        }
        self.held.remove(&filter);
        self.refuse(&filter)
    }

    fn settle(&mut self) {
        let held = &self.held;
        let is_granted = |filter: &String| held.iter().any(|(wide, granted)| *granted && covers(wide, filter));
        let granted = self.waiting.extract_if(.., |waiting| waiting.filters.iter().all(is_granted));
        // Those who have stopped waiting need no answer.
        granted.for_each(|waiting| _ = waiting.done.send(Ok(())));
    }

    fn refuse(&mut self, filter: &str) -> Result<()> {
        let refusal = || {
            let message = format!("the subscription to `{}/{filter}` was refused", self.app_id);
            Error::Refused { kind: Kind::Denied, message, retry_after: None }
        };
        let refused: Vec<_> = self
            .waiting
            .extract_if(.., |waiting| waiting.filters.iter().any(|narrow| covers(filter, narrow)))
            .collect();
        if refused.is_empty() {
            return Err(refusal());
        }
        refused.into_iter().for_each(|waiting| _ = waiting.done.send(Err(refusal())));
        Ok(())
    }
}

/// The number of the next packet, which is none that downlinks have.
fn next_packet(last: &mut u16) -> u16 {
    *last = last.checked_add(1).unwrap_or(IN_FLIGHT_MAX + 1);
    *last
}

/// The filters that no other one covers.
fn widest(filters: &[String]) -> Vec<&str> {
    let is_covered = |filter: &str| filters.iter().any(|other| other != filter && covers(other, filter));
    let mut widest: Vec<&str> = filters.iter().map(String::as_str).filter(|filter| !is_covered(filter)).collect();
    widest.sort_unstable();
    widest.dedup();
    widest
}
