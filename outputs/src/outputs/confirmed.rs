//! The last messages that went through an output without a queue, which confirms each.

use std::{sync::Arc, time::Duration};

use server::ledger::{Owner, Owners};
use types::{AppId, DevId, Timestamp};

use crate::{
    Settings,
    destination::Destination,
    queue_workers::{About, FinishedDelivery, RecentDeliveries, RecentDelivery, Timing},
    sender::SendReceipt,
};

/// The newest messages of each application that such an output has confirmed.
pub struct Confirmed {
    recent: RecentDeliveries,
    owners: Arc<Owners>,
    /// The kind of output.
    kind: &'static str,
}

impl Confirmed {
    /// None yet. The settings bound how many there will be.
    pub fn new(settings: &Settings, owners: Arc<Owners>, kind: &'static str) -> Self {
        Self { recent: RecentDeliveries::new(settings), owners, kind }
    }

    /// Records that a message was confirmed: its device, event and [identity](crate::OutputMessage::identity), when it
    /// was accepted, and when it was confirmed after how long. Never waits, because whoever sent the message does.
    pub fn record(
        &self,
        app_id: &AppId,
        (dev_id, event, identity): (&DevId, &str, u64),
        accepted: Timestamp,
        (at, duration): (Timestamp, Duration),
    ) {
        let about = About { dev_id: Some(dev_id), event, identity, accepted };
        let left = FinishedDelivery::new(about, (Ok(SendReceipt::default()), 1), Timing { at, duration });
        let owner = self.owners.last(app_id);
        self.recent.record(&mut None, (&owner, &self.destination(app_id)), &[left]);
    }

    /// The newest message with this identity that was accepted from this moment on.
    pub async fn find(&self, app_id: &AppId, identity: u64, from: Timestamp) -> Option<RecentDelivery> {
        let (owner, destination) = (self.owners.of(app_id).await, self.destination(app_id));
        // It was kept so if its owner was not known yet.
        [owner, Owner::from(app_id)]
            .iter()
            .find_map(|owner| self.recent.find((owner, &destination), identity, (from, None)))
    }

    fn destination(&self, app_id: &AppId) -> Destination {
        Destination::new(app_id, self.kind, "")
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use server::ledger::OwnerSource;
    use testing::ManualClock;
    use types::UserId;

    use super::*;

    struct Alice;

    #[async_trait]
    impl OwnerSource for Alice {
        async fn owner_of(&self, _app_id: &AppId) -> Option<UserId> {
            Some(UserId::from_bytes([1; 12]))
        }
    }

    #[tokio::test]
    async fn a_message_waits_for_no_owner_and_is_found_once_there_is_one() {
        let owners = Arc::new(Owners::unknown(ManualClock::new()));
        let confirmed = Confirmed::new(&Settings::default(), owners.clone(), "broker");
        let (app_id, dev_id): (AppId, DevId) = ("my-app".parse().unwrap(), "dev-1".parse().unwrap());
        let at = Timestamp::from_millis;
        let keep = |identity: u64, millis: i64| {
            let confirmation = (at(millis + 5), Duration::from_millis(5));
            confirmed.record(&app_id, (&dev_id, "up", identity), at(millis), confirmation);
        };
        let find = async |identity: u64| confirmed.find(&app_id, identity, at(1000)).await.map(|found| found.at);
        keep(1, 1000);
        owners.ask(Arc::new(Alice));
        assert_eq!(find(1).await, Some(at(1005)));
        keep(2, 2000);
        assert_eq!([find(1).await, find(2).await, find(3).await], [Some(at(1005)), Some(at(2005)), None]);
    }
}
