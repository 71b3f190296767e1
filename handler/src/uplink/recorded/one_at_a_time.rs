//! Long work of which an application has one at a time.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use types::AppId;

use crate::Error;

/// The applications for which this process does such work now.
#[derive(Clone, Debug, Default)]
pub struct OneAtATime(Arc<Mutex<HashSet<AppId>>>);

/// Nobody else in this process does such work for the application until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Running {
    all: OneAtATime,
    app_id: AppId,
}

impl OneAtATime {
    /// [`Error::Running`] if `what` runs for the application already.
    pub(crate) fn begin(&self, what: &'static str, app_id: &AppId) -> Result<Running, Error> {
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app_id.clone());
        if !is_first {
            return Err(Error::Running { what, app_id: app_id.clone() });
        }
        Ok(Running { all: self.clone(), app_id: app_id.clone() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.app_id);
    }
}
