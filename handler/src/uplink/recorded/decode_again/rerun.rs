//! Runs functions on stored uplinks.

use std::{collections::HashMap, sync::Arc, time::Duration};

use history::Record;
use runtime::Priority;
use server::usage::Usage;
use tokio::{sync::Mutex, time::sleep};
use types::{AppId, Kind, Kinded};

use super::{
    DecodeAgain, Functions, Parts,
    compare::{Verdict, compare, compare_exactly},
    compared_result::ComparedResult,
};
use crate::{
    Error,
    payload::{Decoded, ExpectedFuel, HashedLimits, LowerLimit, Payload, Run},
    registry::application::Application,
    uplink::{
        Uplinks,
        stored::{StoredUplink, payload},
    },
};

/// Maximum number of attempts while the queue of the sandbox is full, and the pause between them.
const ATTEMPTS_MAX: usize = 600;
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// Runs functions on stored uplinks.
pub(super) struct Rerun {
    uplinks: Arc<Uplinks>,
    usage: Usage,
    functions: Functions,
    /// True if given functions run within the limits that uplinks had. What came of these then is compared, as
    /// corrections were made within others.
    has_recorded_limits: bool,
    compared: Option<Setup>,
    fuel: ExpectedFuel,
    /// The versions that ran then, as far as they are kept.
    recorded: Mutex<HashMap<u32, Option<Arc<Application>>>>,
    /// Other limits than those of now, by the first bytes of their hashes.
    past_limits: Mutex<HashMap<[u8; 8], Result<HashedLimits, Obstacle>>>,
}

/// Functions, and the limits within which they run.
struct Setup {
    application: Arc<Application>,
    limits: HashedLimits,
}

/// Limits that are lower now than when an uplink came, so that it cannot run as it did. None if its functions or limits
/// are gone.
pub(super) type Obstacle = Arc<[LowerLimit]>;

/// An uplink that was decoded again.
pub(super) struct Decoding {
    pub(super) original: Record,
    /// The newest correction of it, if there is one.
    pub(super) newest: Option<Record>,
    pub(super) after: Result<After, Obstacle>,
}

/// Result of decoding an uplink again.
pub(super) struct After {
    pub(super) application: Arc<Application>,
    pub(super) decoded: Decoded,
    pub(super) verdict: Verdict,
    pub(super) fuel_before: u64,
}

impl Rerun {
    pub(super) fn new(parts: &Parts, again: &DecodeAgain) -> Self {
        let payloads = &parts.uplinks.payloads;
        let now = |application: &Arc<Application>| Setup {
            application: Arc::clone(application),
            limits: payloads.limits(&application.summary().app_id).clone(),
        };
        Self {
            uplinks: parts.uplinks.clone(),
            usage: parts.usage.clone(),
            functions: again.functions.clone(),
            has_recorded_limits: again.has_recorded_limits,
            compared: again.compared.as_ref().map(now),
            fuel: ExpectedFuel::default(),
            recorded: Mutex::default(),
            past_limits: Mutex::default(),
        }
    }

    /// Decodes uplinks again, and compares the results with the stored ones.
    pub(super) async fn run(self: Arc<Self>, uplinks: Vec<StoredUplink>) -> Result<Vec<Decoding>, Error> {
        let payloads: Vec<_> = uplinks.iter().map(|(original, _)| payload(original)).collect();
        let setups = self.setups(&uplinks).await?;
        let runnable: Vec<_> = setups.iter().map(|setup| setup.as_ref().ok()).collect();
        let decoded = self.decode(&runnable, &payloads).await?;
        let compared: Vec<_> = uplinks.iter().map(|stored| self.compared_with(stored)).collect();
        let before = self.decode(&compared, &payloads).await?;
        let results = uplinks.into_iter().zip(setups).zip(decoded.into_iter().zip(before));
        let decodings = results.map(|(((original, newest), setup), (decoded, before))| {
            let after = setup.and_then(|Setup { application, .. }| {
                let decoded = decoded.ok_or_else(Obstacle::default)?;
                let (verdict, fuel_before) = self.compare(&original, newest.as_ref(), before.as_ref(), &decoded);
                Ok(After { application, decoded, verdict, fuel_before })
            });
            Decoding { original, newest, after }
        });
        Ok(decodings.collect())
    }

    /// The functions and limits that decode each of these.
    async fn setups(&self, uplinks: &[StoredUplink]) -> Result<Vec<Result<Setup, Obstacle>>, Error> {
        let mut setups = Vec::with_capacity(uplinks.len());
        for (original, _) in uplinks {
            setups.push(match &self.functions {
                Functions::Given(application) => {
                    let limits = self.limits_for(original).await?;
                    limits.map(|limits| Setup { application: Arc::clone(application), limits })
                }
                Functions::Recorded => self.recorded(original).await?,
            });
        }
        Ok(setups)
    }

    fn compare(
        &self,
        original: &Record,
        newest: Option<&Record>,
        before: Option<&Decoded>,
        decoded: &Decoded,
    ) -> (Verdict, u64) {
        match (before, &self.functions) {
            (Some(before), _) => {
                (compare(&ComparedResult::from(before), &ComparedResult::from(decoded)), before.cost.fuel)
            }
            (None, Functions::Recorded) => {
                (compare_exactly(&ComparedResult::from(original), &ComparedResult::from(decoded)), original.fuel)
            }
            (None, Functions::Given(_)) => {
                let stored = newest.filter(|_| !self.has_recorded_limits).unwrap_or(original);
                let verdict = match compare(&ComparedResult::from(stored), &ComparedResult::from(decoded)) {
                    // Two functions that are compared correct nothing.
                    Verdict::Equal if stored.revision > 0 && self.compared.is_none() => Verdict::AlreadyCorrected,
                    verdict => verdict,
                };
                (verdict, stored.fuel)
            }
        }
    }

    /// The functions that have to run for the comparison; none if what is stored came from these functions within these
    /// limits.
    fn compared_with(&self, (original, newest): &StoredUplink) -> Option<&Setup> {
        let compared = self.compared.as_ref()?;
        let stored = newest.as_ref().unwrap_or(original);
        let hash = compared.application.summary().functions_hash;
        let is_theirs =
            stored.functions.as_ref() == Some(hash.as_bytes()) && stored.limits == Some(compared.limits.prefix());
        (!is_theirs).then_some(compared)
    }

    /// Decodes each of these payloads with its functions, if it has any.
    async fn decode(&self, setups: &[Option<&Setup>], payloads: &[Payload]) -> Result<Vec<Option<Decoded>>, Error> {
        let mut decoded = Vec::with_capacity(payloads.len());
        while let Some(setup) = setups.get(decoded.len()) {
            let is_same = |other: &&Option<&Setup>| match (setup, other) {
                (Some(one), Some(other)) => one.is_same(other),
                (one, other) => one.is_none() && other.is_none(),
            };
            let (first, count) = (decoded.len(), setups[decoded.len()..].iter().take_while(is_same).count());
            match setup {
                Some(setup) => {
                    let some = self.call(setup, &payloads[first..first + count]).await?;
                    decoded.extend(some.into_iter().map(Some));
                }
                None => decoded.extend((0..count).map(|_| None)),
            }
        }
        Ok(decoded)
    }

    /// Decodes the first of these at the lowest priority, at least one, and waits while the queue is full.
    async fn call(&self, setup: &Setup, payloads: &[Payload]) -> Result<Vec<Decoded>, Error> {
        let run = Run { priority: Priority::DryRun, usage: &self.usage };
        let (functions, set) = (setup.application.summary().functions_hash, (&*setup.application, &setup.limits));
        let mut attempts = 1;
        loop {
            let fuel = self.fuel.expected(functions);
            match self.uplinks.payloads.decode_several(set, payloads, fuel, run).await {
                Err(error) if error.kind() == Kind::Unavailable && attempts < ATTEMPTS_MAX => attempts += 1,
                result => {
                    let decoded = result?;
                    self.fuel.add(functions, decoded.iter().map(|decoded| decoded.cost.fuel));
                    return Ok(decoded);
                }
            }
            sleep(BUSY_WAIT).await;
        }
    }

    /// The functions and limits that this uplink had when it came.
    async fn recorded(&self, record: &Record) -> Result<Result<Setup, Obstacle>, Error> {
        let gone = || Ok(Err(Obstacle::default()));
        let (Some(functions), Some(version)) = (record.functions, record.version) else { return gone() };
        let application = self.recorded_application(&record.app_id, version).await?;
        let is_same = |application: &Arc<Application>| application.summary().functions_hash.as_bytes() == &functions;
        let (Some(application), Some(limits)) = (application.filter(is_same), record.limits) else { return gone() };
        let limits = self.recorded_limits(&record.app_id, limits).await?;
        Ok(limits.map(|limits| Setup { application, limits }))
    }

    /// The application as it was with this version; none if that is not kept.
    async fn recorded_application(&self, app_id: &AppId, version: u32) -> Result<Option<Arc<Application>>, Error> {
        let mut recorded = self.recorded.lock().await;
        if let Some(known) = recorded.get(&version) {
            return Ok(known.clone());
        }
        let application = match self.uplinks.applications.version(app_id, Some(version)).await {
            Ok(stored) => Some(Arc::new(stored.application)),
            Err(Error::VersionNotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        recorded.insert(version, application.clone());
        Ok(application)
    }

    /// The limits of given functions on this uplink.
    async fn limits_for(&self, record: &Record) -> Result<Result<HashedLimits, Obstacle>, Error> {
        match record.limits.filter(|_| self.has_recorded_limits) {
            Some(limits) => self.recorded_limits(&record.app_id, limits).await,
            None => Ok(Ok(self.uplinks.payloads.limits(&record.app_id).clone())),
        }
    }

    /// The limits with this hash, if those of now allow as much.
    async fn recorded_limits(&self, app_id: &AppId, hash: [u8; 8]) -> Result<Result<HashedLimits, Obstacle>, Error> {
        let now = self.uplinks.payloads.limits(app_id);
        if now.prefix() == hash {
            return Ok(Ok(now.clone()));
        }
        let mut past_limits = self.past_limits.lock().await;
        if let Some(known) = past_limits.get(&hash) {
            return Ok(known.clone());
        }
        let limits = match self.uplinks.applications.past_limits(hash).await? {
            Some(then) => now.lowered_to(then).map_err(Obstacle::from),
            None => Err(Obstacle::default()),
        };
        past_limits.insert(hash, limits.clone());
        Ok(limits)
    }
}

impl Setup {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.application, &other.application) && self.limits.prefix() == other.limits.prefix()
    }
}
