//! Hands events over to a receiver, once each, and again and again while they may be accepted later.

pub mod api_watch;
pub mod dropped;
pub mod network;
pub mod traffic;

use std::{num::NonZeroUsize, sync::Arc};

use link::backoff::Backoff;
use lru::LruCache;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::{DevEui, NetworkEvent, NetworkRefusal};

use self::{network::Receiver, traffic::NetworkTraffic};
use crate::{
    metrics,
    receive::dedup::{Dedup, MessageKey},
};

/// Maximum number of devices whose refusal is remembered, so that it is not logged again.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// Hands events over.
pub struct HandOver {
    /// The events that were taken.
    pub dedup: Dedup,
    /// Counts what becomes of events.
    pub traffic: Arc<NetworkTraffic>,
    refused: Mutex<LruCache<DevEui, String>>,
    /// Cancelled when the bridge stops: what was not taken by then comes again on its next start.
    stopping: CancellationToken,
}

/// Outcome of handing over an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// The receiver has it.
    Taken,
    /// It was dealt with before.
    Duplicate,
    /// The receiver will never take it.
    Refused,
    /// Its source says that it is not the receiver's.
    Withdrawn,
    /// The bridge stops: it comes again.
    Stopped,
}

impl HandedOver {
    /// Counts the outcome. Returns true if the source may forget the event.
    pub fn count(self, count: impl Fn(&'static str)) -> bool {
        match self {
            Self::Taken => count("forwarded"),
            Self::Duplicate => count("duplicate"),
            Self::Refused => metrics::dropped("refused"),
            Self::Withdrawn => metrics::dropped("foreign"),
            Self::Stopped => return false,
        }
        true
    }
}

impl HandOver {
    /// `stopping` ends the attempts to hand over what may be taken later.
    pub fn new(dedup: Dedup, traffic: Arc<NetworkTraffic>, stopping: CancellationToken) -> Self {
        Self { dedup, traffic, refused: Mutex::new(LruCache::new(REFUSED_MAX)), stopping }
    }

    /// Hands an event over as `event` returns it, which may know more of it each time. `key` is that of all its copies.
    pub async fn hand_over<F: Future<Output = Option<NetworkEvent>>>(
        &self,
        receiver: &dyn Receiver,
        (dev_eui, key): (DevEui, MessageKey),
        event: impl Fn() -> F,
    ) -> HandedOver {
        if self.dedup.contains(key) {
            self.traffic.duplicate();
            return HandedOver::Duplicate;
        }
        let outcome = self.try_until_done(receiver, dev_eui, event).await;
        match outcome {
            HandedOver::Taken => self.dedup.add(key),
            HandedOver::Withdrawn => self.traffic.foreign(dev_eui),
            // What is refused may be accepted later, if its network sends it again.
            HandedOver::Refused | HandedOver::Duplicate | HandedOver::Stopped => {}
        }
        outcome
    }

    async fn try_until_done<F: Future<Output = Option<NetworkEvent>>>(
        &self,
        receiver: &dyn Receiver,
        dev_eui: DevEui,
        event: impl Fn() -> F,
    ) -> HandedOver {
        let (mut backoff, mut attempts) = (Backoff::default(), 0_u32);
        loop {
            let Some(event) = event().await else { return HandedOver::Withdrawn };
            let received = event.received();
            match receiver.receive(event).await {
                Ok(()) => {
                    self.traffic.taken(received);
                    self.refused.lock().pop(&dev_eui);
                    return HandedOver::Taken;
                }
                Err(refusal) if !refusal.may_pass() => {
                    self.refused(dev_eui, &refusal);
                    return HandedOver::Refused;
                }
                Err(refusal) => {
                    // The first one may lack what only the network's API says.
                    if attempts == 1 {
                        tracing::warn!(%dev_eui, reason = refusal.reason(), "cannot take an event now: trying again");
                    }
                    attempts = attempts.saturating_add(1);
                    self.traffic.retried();
                }
            }
            tokio::select! {
                () = backoff.pause() => {}
                () = self.stopping.cancelled() => return HandedOver::Stopped,
            }
        }
    }

    /// Counts a refusal. The log mentions a device again only for another reason.
    fn refused(&self, dev_eui: DevEui, refusal: &NetworkRefusal) {
        self.traffic.refused(dev_eui, refusal);
        let known = self.refused.lock().put(dev_eui, refusal.reason().to_owned());
        if known.as_deref() == Some(refusal.reason()) {
            tracing::debug!(%dev_eui, reason = refusal.reason(), "dropped an event of a device");
        } else {
            tracing::warn!(%dev_eui, reason = refusal.reason(), "dropped an event of a device");
        }
    }
}
