//! The newest deliveries of a webhook: each in a row, and how many of them succeeded how fast; and what it gets next.

use api::rest::handler::{RecentDelivery, RecentDeliveryList, WaitingMessage};
use client::webhooks::WebhookClient;
use types::WebhookId;

use super::delivered::{self, End};
use crate::{
    Result,
    site::page::{Time, milliseconds},
};

/// Maximum number of deliveries on the page. The sums are of all that are remembered.
const SHOWN_MAX: usize = 20;

/// Messages that a webhook took, or did not take in the end, as far as its handler remembers them.
pub(super) struct Recent {
    pub(super) rows: Vec<Row>,
    /// None if nothing is remembered.
    pub(super) sums: Option<Sums>,
    /// The oldest messages that wait.
    pub(super) waiting: Vec<WaitingRow>,
    /// When the next attempts begin, if they pause after failures.
    pub(super) next: Option<Time>,
}

/// A message that waits, in a table.
pub(super) struct WaitingRow {
    pub(super) accepted: Time,
    /// The parameters of the link to it; empty for none.
    pub(super) message: String,
    pub(super) dev_id: String,
    pub(super) event: String,
    pub(super) attempts: u32,
}

/// A message in a table.
pub(super) struct Row {
    pub(super) at: Time,
    /// The parameters of the link to its message; empty for none.
    pub(super) message: String,
    pub(super) dev_id: String,
    pub(super) event: String,
    pub(super) is_delivered: bool,
    /// The HTTP status; empty for none.
    pub(super) status: String,
    pub(super) attempts: u32,
    pub(super) duration: String,
}

/// All deliveries together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) all: usize,
    pub(super) delivered: usize,
    pub(super) percent: String,
    /// Number of those that were delivered at the first attempt.
    pub(super) at_once: usize,
    /// The durations that half of the attempts that succeeded did not exceed, and 99 %; empty if there are none.
    pub(super) median: String,
    pub(super) p99: String,
}

impl Recent {
    pub(super) async fn of(client: &WebhookClient, id: &WebhookId) -> Result<Self> {
        Ok(Self::new(client.deliveries(id).await?))
    }

    fn new(list: RecentDeliveryList) -> Self {
        let RecentDeliveryList { deliveries, waiting, next } = list;
        Self {
            sums: Sums::of(&deliveries),
            rows: deliveries.into_iter().take(SHOWN_MAX).map(Row::new).collect(),
            waiting: waiting.into_iter().map(WaitingRow::new).collect(),
            next: next.map(|next| Time(next.as_nanos())),
        }
    }
}

impl WaitingRow {
    fn new(message: WaitingMessage) -> Self {
        let WaitingMessage { dev_id, event, accepted_at, attempts } = message;
        let message = delivered::query((&dev_id, &event), accepted_at, End::Waiting);
        Self { accepted: Time(accepted_at.as_nanos()), message, dev_id, event, attempts }
    }
}

impl Row {
    fn new(delivery: RecentDelivery) -> Self {
        let RecentDelivery { dev_id, event, accepted_at, at, is_delivered, status, attempts, duration_us } = delivery;
        let end = if is_delivered { End::Delivered(at) } else { End::GivenUp(at) };
        Self {
            at: Time(at.as_nanos()),
            message: delivered::query((&dev_id, &event), accepted_at, end),
            dev_id,
            event,
            is_delivered,
            status: status.map(|status| status.to_string()).unwrap_or_default(),
            attempts,
            duration: milliseconds(duration_us),
        }
    }
}

impl Sums {
    fn of(deliveries: &[RecentDelivery]) -> Option<Self> {
        let all = deliveries.len();
        let delivered = || deliveries.iter().filter(|delivery| delivery.is_delivered);
        let mut durations: Vec<u64> = delivered().map(|delivery| delivery.duration_us).collect();
        durations.sort_unstable();
        // Rounded down, so that only all are 100 %.
        let thousandths = (1000 * durations.len()).checked_div(all)?;
        let at_most = |percent: usize| {
            let place = (durations.len() * percent).div_ceil(100).saturating_sub(1);
            durations.get(place).copied().map(milliseconds).unwrap_or_default()
        };
        Some(Self {
            all,
            delivered: durations.len(),
            percent: format!("{}.{}", thousandths / 10, thousandths % 10),
            at_once: delivered().filter(|delivery| delivery.attempts == 1).count(),
            median: at_most(50),
            p99: at_most(99),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(duration_us: u64, attempts: u32, is_delivered: bool) -> RecentDelivery {
        RecentDelivery { duration_us, attempts, is_delivered, ..RecentDelivery::default() }
    }

    #[test]
    fn sums_are_of_all_deliveries_and_durations_of_those_that_succeeded() {
        let mut deliveries: Vec<_> = (1..=100).map(|number| delivery(1000 * number, 1, true)).collect();
        deliveries.push(delivery(9_000_000, 10, false));
        deliveries.push(delivery(50_500, 2, true));
        let recent = Recent::new(RecentDeliveryList { deliveries, ..RecentDeliveryList::default() });
        let sums = recent.sums.unwrap();
        assert_eq!((recent.rows.len(), sums.all, sums.delivered, sums.at_once), (SHOWN_MAX, 102, 101, 100));
        assert_eq!((sums.percent.as_str(), sums.median.as_str(), sums.p99.as_str()), ("99.0", "50 ms", "99 ms"));
    }

    #[test]
    fn nothing_is_said_about_no_deliveries() {
        assert_eq!(Sums::of(&[]), None);
        let failed = Sums::of(&[delivery(1000, 10, false)]).unwrap();
        assert_eq!((failed.percent.as_str(), failed.median.as_str(), failed.p99.as_str()), ("0.0", "", ""));
    }
}
