//! Long work of which an application has one at a time.

mod claim;

use std::{collections::HashSet, sync::Arc};

use history::History;
use parking_lot::Mutex;
use store::Store;
use types::{AppId, Clock};

use self::claim::{Claim, Claims};
use crate::Error;

/// The applications for which this process does such work now.
#[derive(Clone, Default)]
pub struct OneAtATime {
    running: Arc<Mutex<HashSet<AppId>>>,
    /// None if there is no other process.
    claims: Option<Claims>,
}

/// Nobody else does such work for the application until it is dropped.
#[must_use]
pub(crate) struct Running {
    all: OneAtATime,
    what: &'static str,
    app_id: AppId,
    claim: Option<Claim>,
}

impl OneAtATime {
    /// Work of which all handlers together do one at a time; `name` is that of its claims in the store.
    ///
    /// `history` is moved to files before work that has recorded something counts as ended, so that the next handler
    /// sees that.
    pub fn among_handlers(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        name: &'static str,
        history: Option<Arc<History>>,
    ) -> Self {
        Self { running: Arc::default(), claims: Some(Claims::new(store, clock, name, history)) }
    }

    /// [`Error::Running`] or [`Error::RunningElsewhere`] if `what` runs for the application already.
    pub(crate) async fn begin(&self, what: &'static str, app_id: &AppId) -> Result<Running, Error> {
        let is_first = self.running.lock().insert(app_id.clone());
        if !is_first {
            return Err(Error::Running { what, app_id: app_id.clone() });
        }
        let mut running = Running { all: self.clone(), what, app_id: app_id.clone(), claim: None };
        if let Some(claims) = &self.claims {
            let claim = claims.claim(app_id).await?;
            running.claim = Some(claim.ok_or_else(|| Error::RunningElsewhere { what, app_id: app_id.clone() })?);
        }
        Ok(running)
    }
}

impl Running {
    /// [`Error::ClaimLost`] if another handler may do such work by now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_held = self.claim.as_ref().is_none_or(Claim::is_held);
        if is_held { Ok(()) } else { Err(Error::ClaimLost { what: self.what, app_id: self.app_id.clone() }) }
    }

    /// Has the next handler see what is recorded from now on. Otherwise nothing moves to files when the work ends.
    pub(crate) fn note_recording(&self) {
        self.claim.iter().for_each(Claim::note_recording);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.running.lock().remove(&self.app_id);
    }
}
