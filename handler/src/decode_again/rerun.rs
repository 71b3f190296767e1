//! Runs functions on one stored uplink.

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
    payload::{Decoded, Payload, Run},
    uplink::{Uplinks, stored::payload},
};

/// How often an uplink is tried while the queue of the sandbox is full, and how long between.
const ATTEMPTS_MAX: usize = 600;
const BUSY_WAIT: Duration = Duration::from_millis(100);

/// Runs functions on stored uplinks.
pub(super) struct Rerun {
    uplinks: Arc<Uplinks>,
    usage: Usage,
    functions: Functions,
    compared: Option<Arc<Application>>,
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

/// What came of it.
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
            recorded: Mutex::default(),
        }
    }

    /// Decodes an uplink again, and compares the result with that of its newest revision.
    pub(super) async fn run(self: Arc<Self>, original: Record, newest: Option<Record>) -> Result<Decoding, Error> {
        let application = match &self.functions {
            Functions::Given(application) => Some(Arc::clone(application)),
            Functions::Recorded => self.recorded(&original).await?,
        };
        let after = match application {
            Some(application) => Some(self.decode(application, &original, newest.as_ref()).await?),
            None => None,
        };
        Ok(Decoding { original, newest, after })
    }

    async fn decode(
        &self,
        application: Arc<Application>,
        original: &Record,
        newest: Option<&Record>,
    ) -> Result<After, Error> {
        let payload = payload(original);
        let decoded = self.call(&application, &payload).await?;
        let stored = match &self.functions {
            Functions::Given(_) => newest.unwrap_or(original),
            Functions::Recorded => original,
        };
        let (verdict, fuel_before) = match self.compared_with(stored) {
            Some(compared) => {
                let before = self.call(compared, &payload).await?;
                (compare(&Made::from(&before), &Made::from(&decoded)), before.cost.fuel)
            }
            None => {
                let exactly = matches!(self.functions, Functions::Recorded);
                let compare = if exactly { compare_exactly } else { compare };
                (compare(&Made::from(stored), &Made::from(&decoded)), stored.fuel)
            }
        };
        Ok(After { application, decoded, verdict, fuel_before })
    }

    /// The application that has to run for the comparison; none if what is stored came from its functions.
    fn compared_with(&self, stored: &Record) -> Option<&Application> {
        let compared = self.compared.as_deref()?;
        let hash = compared.summary().functions_hash;
        (stored.functions.as_ref() != Some(hash.as_bytes())).then_some(compared)
    }

    /// Runs at the lowest priority, and waits while the queue is full.
    async fn call(&self, application: &Application, payload: &Payload) -> Result<Decoded, Error> {
        let run = Run { priority: Priority::DryRun, usage: &self.usage };
        let mut attempts = 1;
        loop {
            match self.uplinks.payloads.decode(application, payload, run).await {
                Err(error) if error.kind() == Kind::Unavailable && attempts < ATTEMPTS_MAX => attempts += 1,
                result => return result,
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
