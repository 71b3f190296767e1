//! Fetches what messages need from the network's API, once for all messages that need it at the same time.

use std::{
    hash::{BuildHasher, RandomState},
    mem,
    num::NonZeroUsize,
    pin::pin,
    time::Duration,
};

use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};
use server::status::ErrorChain;
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    time::{Instant, sleep, timeout, timeout_at},
};
use types::{Kind, Kinded};

use crate::codec::outcome::CodecError;

/// Maximum number of calls of the API at once for objects that are not known yet.
const LOOKUPS_MAX: usize = 16;
/// The pause before an unreachable API is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Interval at which an unreachable API is asked for unknown objects. In between, they stay unknown.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which refusals are logged; those in between are counted.
const LOG_PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of objects that are remembered as refused by the API.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
/// Maximum length of the id of an object, in bytes. Ids of networks are far shorter, but whoever may publish on a
/// broker can invent any, and refused ones are remembered.
const ID_BYTES_MAX: usize = 1024;

/// Reasons why an object is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookUpError {
    /// It may be known later.
    #[error("{network}'s API cannot be reached")]
    Unreachable {
        /// The name of the network.
        network: &'static str,
    },
    /// The network refused to return it, for this reason.
    #[error("{0}")]
    Refused(String),
}

/// An object to look up.
#[derive(Clone, Copy)]
pub struct Object<'a> {
    /// Its kind, such as `device`, for messages.
    pub what: &'static str,
    /// Its id in the network.
    pub id: &'a str,
    /// The application whose API key reads it, if each has its own: what one may not read, another may.
    pub application: &'a str,
}

/// Fetches objects, each once for all messages that wait for it.
pub struct SingleFlight {
    pub(super) api: Api,
    pub(super) limits: LookUpLimits,
    answers: Mutex<Answers>,
    /// One look-up at a time for the same object.
    turns: [AsyncMutex<()>; LOOKUPS_MAX],
    /// One permit for each message that may wait for the API.
    waiting: Semaphore,
    hasher: RandomState,
}

/// The API, for messages.
#[derive(Clone, Copy)]
pub struct Api {
    /// The name of the network.
    pub network: &'static str,
    /// Advice for an API key that may not read something.
    pub key_advice: &'static str,
}

/// Limits on messages that wait for the API.
#[derive(Clone, Copy, Debug)]
pub struct LookUpLimits {
    /// Maximum number of messages that wait for an API that does not answer. For further ones, unknown objects stay
    /// unknown.
    pub waiting_max: usize,
    /// Maximum wait of a message.
    pub wait_max: Duration,
    /// Time for which a refusal is remembered, and interval at which known objects are refreshed.
    pub refused_for: Duration,
}

impl LookUpLimits {
    /// The limits of a bridge with these settings. A part of the messages in progress may wait, so that the others go on.
    pub fn new(in_flight_max: u16, api_wait_ms_max: u64, refresh_interval_ms: u64) -> Self {
        Self {
            waiting_max: usize::from(in_flight_max / 4).max(1),
            wait_max: Duration::from_millis(api_wait_ms_max),
            refused_for: Duration::from_millis(refresh_interval_ms.max(1)),
        }
    }
}

/// The kind of an object, its id, and whose API key was refused.
type RefusalKey = (&'static str, Box<str>, Box<str>);

struct Answers {
    /// Time and reason of each refusal of the API.
    refused: LruCache<RefusalKey, (Instant, String)>,
    /// Time at which the API may be asked again, while it cannot be reached.
    unreachable_until: Option<Instant>,
    /// True if the last call failed.
    is_failing: bool,
    /// Time of the last refusal that was logged, and the number of those since.
    logged: Option<Instant>,
    unlogged: u64,
}

impl Answers {
    /// Returns how many refusals since the last one in the log are not there; none if this one is not to be there, too.
    fn unlogged_before(&mut self, now: Instant) -> Option<u64> {
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_PAUSE) {
            self.unlogged += 1;
            return None;
        }
        self.logged = Some(now);
        Some(mem::take(&mut self.unlogged))
    }
}

impl SingleFlight {
    /// Starts without answers of the API.
    pub fn new(api: Api, limits: LookUpLimits) -> Self {
        Self {
            api,
            waiting: Semaphore::new(limits.waiting_max),
            limits,
            answers: Mutex::new(Answers {
                refused: LruCache::new(REFUSED_MAX),
                unreachable_until: None,
                is_failing: false,
                logged: None,
                unlogged: 0,
            }),
            turns: Default::default(),
            hasher: RandomState::new(),
        }
    }

    /// Returns a known object, or fetches it, and waits for an API that cannot be reached.
    pub async fn get_or_fetch<T, F: Future<Output = client::Result<T>>>(
        &self,
        object: Object<'_>,
        known: impl Fn() -> Option<T>,
        fetch: impl Fn() -> F,
    ) -> Result<T, LookUpError> {
        match known() {
            Some(found) => Ok(found),
            // On the heap, because every message that is being worked on would keep room for it.
            None => Box::pin(self.ask(object, known, fetch)).await,
        }
    }

    async fn ask<T, F: Future<Output = client::Result<T>>>(
        &self,
        object: Object<'_>,
        known: impl Fn() -> Option<T>,
        fetch: impl Fn() -> F,
    ) -> Result<T, LookUpError> {
        self.check_length(object)?;
        self.check_refused(object)?;
        let _permit = self.while_it_answers(self.waiting.acquire(), Instant::now()).await?;
        self.check_reachable()?;
        let (mut is_asked, mut deadline) = (false, Instant::now() + self.limits.wait_max);
        loop {
            let turn = self.turns[self.hasher.hash_one(object.id) as usize % LOOKUPS_MAX].lock();
            let turn = self.while_it_answers(turn, deadline).await?;
            if let Some(found) = known() {
                return Ok(found);
            }
            // Waiting for others does not count.
            if !is_asked {
                (is_asked, deadline) = (true, Instant::now() + self.limits.wait_max);
            }
            let error = match timeout_at(deadline, fetch()).await {
                Ok(Ok(found)) => {
                    self.answered();
                    return Ok(found);
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(self.unreachable()),
            };
            drop(turn);
            crate::metrics::api_failed(error.kind());
            if is_final(&error) {
                self.answered();
                return Err(self.refuse(object, &error));
            }
            self.lock().is_failing = true;
            let Object { what, id, .. } = object;
            tracing::debug!(what, id, error = %ErrorChain(&error), network = self.api.network, "cannot ask the API");
            timeout_at(deadline, sleep(RETRY_PAUSE)).await.map_err(|_| self.unreachable())?;
        }
    }

    /// Waits for others' look-ups: until `deadline` while the API does not answer, and otherwise until they are done.
    async fn while_it_answers<T>(&self, others: impl Future<Output = T>, deadline: Instant) -> Result<T, LookUpError> {
        let mut others = pin!(others);
        loop {
            if let Ok(done) = timeout(RETRY_PAUSE, others.as_mut()).await {
                return Ok(done);
            }
            if Instant::now() >= deadline && self.lock().is_failing {
                return Err(self.api.unreachable());
            }
        }
    }

    fn answered(&self) {
        let mut answers = self.lock();
        (answers.unreachable_until, answers.is_failing) = (None, false);
    }

    /// Returns an error for an id that no object has, of which nothing is remembered.
    fn check_length(&self, Object { what, id, .. }: Object<'_>) -> Result<(), LookUpError> {
        if id.len() <= ID_BYTES_MAX {
            return Ok(());
        }
        let (network, length) = (self.api.network, id.len());
        Err(LookUpError::Refused(format!("{network} has no {what} whose id has {length} bytes")))
    }

    /// Returns the error of an object that the API refused a short time ago.
    fn check_refused(&self, object: Object<'_>) -> Result<(), LookUpError> {
        match self.lock().refused.get(&object.key()) {
            Some((when, reason)) if when.elapsed() < self.limits.refused_for => {
                Err(LookUpError::Refused(reason.clone()))
            }
            _ => Ok(()),
        }
    }

    /// While the API cannot be reached, fails at once, so that unknown devices do not hold up known ones. After a
    /// pause, one message asks again.
    fn check_reachable(&self) -> Result<(), LookUpError> {
        let mut answers = self.lock();
        let now = Instant::now();
        match &mut answers.unreachable_until {
            Some(until) if now < *until => Err(self.api.unreachable()),
            Some(until) => {
                *until = now + UNREACHABLE_PAUSE;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note that the API did not answer in time.
    fn unreachable(&self) -> LookUpError {
        let mut answers = self.lock();
        (answers.unreachable_until, answers.is_failing) = (Some(Instant::now() + UNREACHABLE_PAUSE), true);
        self.api.unreachable()
    }

    fn refuse(&self, object: Object<'_>, error: &client::Error) -> LookUpError {
        let Object { what, id, .. } = object;
        let Api { network, key_advice } = self.api;
        let reason = match error.kind() {
            Kind::NotFound => format!("{network} has no {what} {id}: it was deleted, or the API is another server's"),
            Kind::Unauthenticated | Kind::Denied => format!("the API key may not read {what} {id}: {key_advice}"),
            _ => format!("{network} does not return {what} {id}: {error}"),
        };
        let (mut answers, now) = (self.lock(), Instant::now());
        // Whoever may publish can invent any number of ids.
        if let Some(others) = answers.unlogged_before(now) {
            tracing::warn!(reason, others, "cannot look up what a message needs");
        }
        answers.refused.put(object.key(), (now, reason.clone()));
        LookUpError::Refused(reason)
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock()
    }
}

impl From<LookUpError> for CodecError {
    fn from(error: LookUpError) -> Self {
        Self::Unknown(error.to_string())
    }
}

impl Object<'_> {
    fn key(&self) -> RefusalKey {
        (self.what, self.id.into(), self.application.into())
    }
}

impl Api {
    fn unreachable(&self) -> LookUpError {
        LookUpError::Unreachable { network: self.network }
    }
}

/// Returns true if the same call would fail again. A busy database answers with an internal error, which is not final.
pub fn is_final(error: &client::Error) -> bool {
    !matches!(error.kind(), Kind::Unavailable | Kind::Timeout | Kind::Internal | Kind::Exhausted | Kind::Conflict)
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[test]
    fn refusals_are_logged_at_an_interval_with_the_number_of_others() {
        let mut answers = Answers {
            refused: LruCache::new(REFUSED_MAX),
            unreachable_until: None,
            is_failing: false,
            logged: None,
            unlogged: 0,
        };
        let start = Instant::now();
        let times = [Duration::ZERO, Duration::from_secs(1), LOG_PAUSE / 2, LOG_PAUSE, LOG_PAUSE * 2];
        let logged = times.map(|time| answers.unlogged_before(start + time));
        assert_eq!(logged, [Some(0), None, None, Some(2), Some(0)]);
    }

    #[tokio::test]
    async fn an_id_that_is_too_long_is_refused_without_a_call_and_not_remembered() {
        let second = Duration::from_secs(1);
        let limits = LookUpLimits { waiting_max: 1, wait_max: second, refused_for: second };
        let flight = SingleFlight::new(Api { network: "The network", key_advice: "" }, limits);
        let longest = "x".repeat(ID_BYTES_MAX);
        let object = |id| Object { what: "device", id, application: "" };
        assert_eq!(flight.get_or_fetch(object(&longest), || None, || ready(Ok(7))).await, Ok(7));
        let longer = format!("{longest}x");
        let call = || -> std::future::Ready<client::Result<u8>> { panic!("called") };
        let refused = flight.get_or_fetch(object(&longer), || None, call).await.unwrap_err();
        assert_eq!(refused.to_string(), "The network has no device whose id has 1025 bytes");
        assert!(flight.lock().refused.is_empty());
    }
}
