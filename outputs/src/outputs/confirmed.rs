//! What is remembered of messages that went through an output without a queue, which confirms each.

use std::{sync::Arc, time::Duration};

use server::ledger::Owners;
use types::{AppId, DevId, Timestamp};

use crate::{
    Settings,
    destination::Destination,
    queue_workers::{About, Left, Recent, RecentDelivery, Timing},
    sender::Taken,
};

/// The newest messages of each application that such an output has confirmed.
pub struct Confirmed {
    recent: Recent,
    owners: Arc<Owners>,
    /// The kind of output.
    kind: &'static str,
}

impl Confirmed {
    /// None yet. The settings bound how many there will be.
    pub fn new(settings: &Settings, owners: Arc<Owners>, kind: &'static str) -> Self {
        Self { recent: Recent::new(settings), owners, kind }
    }

    /// Keeps that a message was confirmed: its device, event and [identity](crate::OutputMessage::identity), when it
    /// was accepted, and when it was confirmed after how long.
    pub async fn keep(
        &self,
        app_id: &AppId,
        (dev_id, event, identity): (&DevId, &str, u64),
        accepted: Timestamp,
        (at, duration): (Timestamp, Duration),
    ) {
        let about = About { dev_id: Some(dev_id), event, identity, accepted };
        let left = Left::new(about, (Some(Taken::default()), 1), Timing { at, duration });
        let owner = self.owners.of(app_id).await;
        self.recent.keep(&mut None, (&owner, &self.destination(app_id)), &[left]);
    }

    /// The newest message with this identity that was accepted from this moment on.
    pub async fn find(&self, app_id: &AppId, identity: u64, from: Timestamp) -> Option<RecentDelivery> {
        let owner = self.owners.of(app_id).await;
        self.recent.find((&owner, &self.destination(app_id)), identity, (from, None))
    }

    fn destination(&self, app_id: &AppId) -> Destination {
        Destination::new(app_id, self.kind, "")
    }
}
