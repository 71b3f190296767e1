//! Runs functions on stored uplinks.

use std::{collections::HashMap, sync::Arc, time::Duration};

use history::Record;
use runtime::Priority;
use server::usage::Usage;
use tokio::{sync::Mutex, time::sleep};
use types::{Kind, Kinded};

use super::{
    DecodeAgain, Functions, Parts,
    compare::{Verdict, compare, compare_exactly},
    made::Made,
};
use crate::{
    Error,
    application::Application,
    payload::{Decoded, ExpectedFuel, Payload, Run},
    uplink::{
        Uplinks,
        stored::{Stored, payload},
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
    compared: Option<Arc<Application>>,
    fuel: ExpectedFuel,
    /// The versions that ran then, as far as they are kept.
    recorded: Mutex<HashMap<u32, Option<Arc<Application>>>>,
}

/// An uplink that was decoded again.
pub(super) struct Decoding {
    pub(super) original: Record,
    /// The newest correction of it, if there is one.
    pub(super) newest: Option<Record>,
    /// None if the functions or limits that it ran with are gone.
    pub(super) after: Option<After>,
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
        Self {
            uplinks: parts.uplinks.clone(),
            usage: parts.usage.clone(),
            functions: again.functions.clone(),
            compared: again.compared.clone(),
            fuel: ExpectedFuel::default(),
            recorded: Mutex::default(),
        }
    }

    /// Decodes uplinks again, and compares the results with those of their newest revisions.
    pub(super) async fn run(self: Arc<Self>, uplinks: Vec<Stored>) -> Result<Vec<Decoding>, Error> {
        let payloads: Vec<_> = uplinks.iter().map(|(original, _)| payload(original)).collect();
        let applications = self.applications(&uplinks).await?;
        let decoded = self.decode(&applications, &payloads).await?;
        let compared: Vec<_> = uplinks.iter().map(|stored| self.compared_with(stored)).collect();
        let before = self.decode(&compared, &payloads).await?;
        let results = uplinks.into_iter().zip(applications).zip(decoded.into_iter().zip(before));
        let decodings = results.map(|(((original, newest), application), (decoded, before))| {
            let after = application.zip(decoded).map(|(application, decoded)| {
                let (verdict, fuel_before) = self.compare(&original, newest.as_ref(), before.as_ref(), &decoded);
                After { application, decoded, verdict, fuel_before }
            });
            Decoding { original, newest, after }
        });
        Ok(decodings.collect())
    }

    /// The application whose functions decode each of these; none if they or the limits are gone.
    async fn applications(&self, uplinks: &[Stored]) -> Result<Vec<Option<Arc<Application>>>, Error> {
        let mut applications = Vec::with_capacity(uplinks.len());
        for (original, _) in uplinks {
            applications.push(match &self.functions {
                Functions::Given(application) => Some(Arc::clone(application)),
                Functions::Recorded => self.recorded(original).await?,
            });
        }
        Ok(applications)
    }

    fn compare(
        &self,
        original: &Record,
        newest: Option<&Record>,
        before: Option<&Decoded>,
        decoded: &Decoded,
    ) -> (Verdict, u64) {
        match (before, &self.functions) {
            (Some(before), _) => (compare(&Made::from(before), &Made::from(decoded)), before.cost.fuel),
            (None, Functions::Recorded) => {
                (compare_exactly(&Made::from(original), &Made::from(decoded)), original.fuel)
            }
            (None, Functions::Given(_)) => {
                let stored = newest.unwrap_or(original);
                (compare(&Made::from(stored), &Made::from(decoded)), stored.fuel)
            }
        }
    }

    /// The application that has to run for the comparison; none if what is stored came from its functions.
    fn compared_with(&self, (original, newest): &Stored) -> Option<Arc<Application>> {
        let compared = self.compared.as_ref()?;
        let stored = newest.as_ref().unwrap_or(original);
        let hash = compared.summary().functions_hash;
        (stored.functions.as_ref() != Some(hash.as_bytes())).then(|| Arc::clone(compared))
    }

    /// Decodes each of these payloads with its application, if it has one.
    async fn decode(
        &self,
        applications: &[Option<Arc<Application>>],
        payloads: &[Payload],
    ) -> Result<Vec<Option<Decoded>>, Error> {
        let mut decoded = Vec::with_capacity(payloads.len());
        while let Some(application) = applications.get(decoded.len()) {
            let is_same = |other: &&Option<Arc<Application>>| match (application, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
            let (first, count) = (decoded.len(), applications[decoded.len()..].iter().take_while(is_same).count());
            match application {
                Some(application) => {
                    let some = self.call(application, &payloads[first..first + count]).await?;
                    decoded.extend(some.into_iter().map(Some));
                }
                None => decoded.extend((0..count).map(|_| None)),
            }
        }
        Ok(decoded)
    }

    /// Decodes the first of these at the lowest priority, at least one, and waits while the queue is full.
    async fn call(&self, application: &Application, payloads: &[Payload]) -> Result<Vec<Decoded>, Error> {
        let run = Run { priority: Priority::DryRun, usage: &self.usage };
        let functions = application.summary().functions_hash;
        let mut attempts = 1;
        loop {
            let fuel = self.fuel.expected(functions);
            match self.uplinks.payloads.decode_several(application, payloads, fuel, run).await {
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

    /// The application as it was when this uplink came; none if that is gone, or its limits were others.
    async fn recorded(&self, record: &Record) -> Result<Option<Arc<Application>>, Error> {
        let limits = self.uplinks.payloads.limits_hash(&record.app_id);
        let (Some(functions), Some(version)) = (record.functions, record.version) else { return Ok(None) };
        let mut recorded = self.recorded.lock().await;
        let known = recorded.get(&version).cloned();
        let application = match known {
            Some(application) => application,
            None => match self.uplinks.applications.version(&record.app_id, Some(version)).await {
                Ok(stored) => Some(Arc::new(stored.application)),
                Err(Error::VersionNotFound { .. }) => None,
                Err(error) => return Err(error),
            },
        };
        recorded.insert(version, application.clone());
        let is_same = |application: &Arc<Application>| application.summary().functions_hash.as_bytes() == &functions;
        Ok(application.filter(|application| is_same(application) && record.limits == Some(limits)))
    }
}
