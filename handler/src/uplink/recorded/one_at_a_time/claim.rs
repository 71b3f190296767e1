//! Claims of work for this process in the store, where other handlers see them. They are renewed until the work ends.

use std::{
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use history::History;
use server::status::ErrorChain;
use store::{Batch, Commit, Key, Store};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout},
};
use types::{AppId, Clock, Timestamp};

use crate::{Error, registry::application::store_keys};

/// Time that a claim counts if it is not renewed, because its process was killed. Longer than other handlers use what
/// they have seen of a bucket.
const AGE_MAX: Duration = Duration::from_secs(6);
/// Interval at which a claim is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// The claims of this process.
#[derive(Clone)]
pub(super) struct Claims {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    name: &'static str,
    history: Option<Arc<History>>,
    /// Tells this process's claims from those of others.
    owner: String,
    next: Arc<AtomicU64>,
}

/// A claim, which ends when it is dropped.
pub(super) struct Claim {
    clock: Arc<dyn Clock>,
    /// None if another process has the claim.
    renewed: watch::Receiver<Option<Renewal>>,
    has_recorded: Arc<AtomicBool>,
    _ended: oneshot::Sender<()>,
}

/// When a claim was last renewed.
#[derive(Clone, Copy)]
struct Renewal {
    begun: Instant,
    /// The same by the clock, as others see it: while a machine is suspended, `Instant` stands still.
    at: Timestamp,
}

impl Claim {
    /// Returns false if another process may have it by now.
    pub(super) fn is_held(&self) -> bool {
        let is_young = |last: Renewal| last.begun.elapsed().max(self.clock.now().since(last.at)) < AGE_MAX;
        self.renewed.borrow().is_some_and(is_young)
    }

    /// Notes that others are to see what is recorded from now on before the claim ends.
    pub(super) fn note_recording(&self) {
        self.has_recorded.store(true, Ordering::Release);
    }
}

impl Claims {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        name: &'static str,
        history: Option<Arc<History>>,
    ) -> Self {
        let owner = format!("{:016x}", RandomState::new().hash_one("owner"));
        Self { store, clock, name, history, owner, next: Arc::default() }
    }

    /// Claims the work for this process; none if another one has it.
    pub(super) async fn claim(&self, app_id: &AppId) -> Result<Option<Claim>, Error> {
        let key = store_keys::work_claim(app_id, self.name)?;
        let value = format!("{}-{}", self.owner, self.next.fetch_add(1, Ordering::Relaxed));
        let begun = self.renewal();
        let claimed = self.store.get_one(&key).await?;
        // What this process has done before may still be about to end.
        if claimed.as_ref().is_some_and(|claimed| !claimed.value.starts_with(self.owner.as_bytes())) {
            return Ok(None);
        }
        let batch = Batch::new().expect_entry(&key, claimed.as_ref());
        let batch = batch.put_until(key.clone(), value.clone(), self.end());
        if self.store.commit(batch).await? == Commit::Conflict {
            return Ok(None);
        }
        let (renewed, last_renewed) = watch::channel(Some(begun));
        let (ended, has_ended) = oneshot::channel();
        // What is about to end may have recorded something that is not in files yet.
        let has_recorded = Arc::new(AtomicBool::new(claimed.is_some()));
        let claim = Claim {
            clock: self.clock.clone(),
            renewed: last_renewed,
            has_recorded: has_recorded.clone(),
            _ended: ended,
        };
        let held = HeldClaim { claims: self.clone(), app_id: app_id.clone(), key, value, renewed, has_recorded };
        tokio::spawn(held.keep(has_ended));
        Ok(Some(claim))
    }

    /// A renewal that begins now.
    fn renewal(&self) -> Renewal {
        Renewal { begun: Instant::now(), at: self.clock.now() }
    }

    fn end(&self) -> u64 {
        self.clock.now().plus(AGE_MAX).as_unix_ms()
    }
}

/// A claim while the work goes on.
struct HeldClaim {
    claims: Claims,
    app_id: AppId,
    key: Key,
    /// Another one for each claim, so that its end does not end the next one of this process.
    value: String,
    renewed: watch::Sender<Option<Renewal>>,
    has_recorded: Arc<AtomicBool>,
}

impl HeldClaim {
    /// Renews the claim until the work has ended.
    async fn keep(self, has_ended: oneshot::Receiver<()>) {
        let renew = |batch: Batch, key| batch.put_until(key, self.value.clone(), self.claims.end());
        let mut ending = pin!(self.ending(has_ended));
        while timeout(RENEW_INTERVAL, ending.as_mut()).await.is_err() {
            self.change(renew).await;
        }
        match self.recorded() {
            None => self.change(Batch::delete).await,
            // The others look at a bucket only every few seconds.
            Some(_) => self.change(renew).await,
        }
    }

    /// Waits until the work has ended, and others see what it has recorded.
    async fn ending(&self, has_ended: oneshot::Receiver<()>) {
        // Nothing is sent: it fails when the other end is dropped.
        _ = has_ended.await;
        let Some(history) = self.recorded() else { return };
        let sealed = history.seal().await;
        if let Err(error) = sealed.and(history.upload().await) {
            let (app_id, error) = (&self.app_id, ErrorChain(&error));
            tracing::warn!(%app_id, %error, "other handlers do not see what was recorded just now: it is moved to files later");
        }
    }

    /// The history that has something which others do not see yet.
    fn recorded(&self) -> Option<&History> {
        self.claims.history.as_deref().filter(|_| self.has_recorded.load(Ordering::Acquire))
    }

    /// Changes the claim unless another process has it, or may have had it.
    async fn change(&self, change: impl FnOnce(Batch, Key) -> Batch) {
        let begun = self.claims.renewal();
        match self.claims.store.change_claim(&self.key, self.value.as_bytes(), change).await {
            Ok(is_ours) => _ = self.renewed.send_replace(is_ours.then_some(begun)),
            Err(error) => {
                let (app_id, error) = (&self.app_id, ErrorChain(&error));
                tracing::warn!(%app_id, %error, "cannot tell other handlers that stored messages are being worked on");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::Embedded;
    use testing::ManualClock;
    use tokio::{task::yield_now, time::sleep};

    use super::*;

    fn app() -> AppId {
        "my-app".parse().unwrap()
    }

    /// The claims of two processes.
    fn two() -> (Arc<ManualClock>, [Claims; 2]) {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let claims = || Claims::new(store.clone(), clock.clone(), "correction", None);
        let both = [claims(), claims()];
        (clock, both)
    }

    #[tokio::test]
    async fn a_process_keeps_others_out_until_its_claim_ends() {
        let (_clock, [one, other]) = two();
        let claim = one.claim(&app()).await.unwrap().unwrap();
        assert!(claim.is_held());
        assert!(other.claim(&app()).await.unwrap().is_none());
        assert!(other.claim(&"your-app".parse().unwrap()).await.unwrap().is_some());
        // The end of the first claim of a process does not end the second.
        let again = one.claim(&app()).await.unwrap().unwrap();
        drop(claim);
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(other.claim(&app()).await.unwrap().is_none());
        drop(again);
        while other.claim(&app()).await.unwrap().is_none() {
            yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_that_is_not_renewed_is_free_and_its_process_notices() {
        let (clock, [one, other]) = two();
        let claim = one.claim(&app()).await.unwrap().unwrap();
        clock.advance(AGE_MAX * 2);
        // Also if it was suspended, so that it has seen nothing of that time.
        assert!(!claim.is_held());
        let taken_over = other.claim(&app()).await.unwrap();
        // The clock is set back, but the store says it.
        clock.set_back(AGE_MAX * 2);
        while claim.is_held() {
            sleep(RENEW_INTERVAL).await;
        }
        // Its end changes nothing.
        drop(claim);
        sleep(RENEW_INTERVAL).await;
        assert!(taken_over.is_some() && one.claim(&app()).await.unwrap().is_none());
    }
}
