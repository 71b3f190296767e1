//! Hands events over to a receiver, again and again while they may be accepted later.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
};

use lru::LruCache;
use tokio_util::sync::CancellationToken;
use types::{DevEui, NetworkEvent, NetworkRefusal};

use crate::{backoff::Backoff, metrics, network::Receiver};

/// Maximum number of devices whose refusal is remembered, so that it is not logged again.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// Hands events over.
pub(crate) struct HandOver {
    refused: Mutex<LruCache<DevEui, String>>,
    /// Cancelled when the bridge stops: what was not taken by then comes again on its next start.
    stopping: CancellationToken,
}

impl HandOver {
    pub(crate) fn new(stopping: CancellationToken) -> Self {
        Self { refused: Mutex::new(LruCache::new(REFUSED_MAX)), stopping }
    }

    /// Whether the event may be acknowledged: it was taken, or will never be.
    pub(crate) async fn hand_over(&self, receiver: &dyn Receiver, dev_eui: DevEui, event: NetworkEvent) -> bool {
        let (mut backoff, mut is_waiting) = (Backoff::new(), false);
        loop {
            match receiver.receive(event.clone()).await {
                Ok(()) => {
                    self.lock().pop(&dev_eui);
                    return true;
                }
                Err(refusal) if !refusal.may_pass() => {
                    self.refused(dev_eui, &refusal);
                    return true;
                }
                Err(refusal) => {
                    if !is_waiting {
                        tracing::warn!(%dev_eui, reason = refusal.reason(), "cannot take an event now: trying again");
                    }
                    is_waiting = true;
                    metrics::retried();
                }
            }
            tokio::select! {
                () = backoff.pause() => {}
                () = self.stopping.cancelled() => return false,
            }
        }
    }

    /// Counts an event that is not taken. The log mentions a device again only for another reason.
    fn refused(&self, dev_eui: DevEui, refusal: &NetworkRefusal) {
        metrics::dropped("refused");
        let known = self.lock().put(dev_eui, refusal.reason().to_owned());
        if known.as_deref() == Some(refusal.reason()) {
            tracing::debug!(%dev_eui, reason = refusal.reason(), "dropped an event of a device");
        } else {
            tracing::warn!(%dev_eui, reason = refusal.reason(), "dropped an event of a device");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<DevEui, String>> {
        // A panic elsewhere leaves the reasons usable.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
