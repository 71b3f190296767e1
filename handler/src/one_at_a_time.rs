//! Whoever writes corrections of an application: one at a time, because each gives the next revision to what it found.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use types::AppId;

use crate::Error;

/// The applications whose corrections are being written by this process.
#[derive(Clone, Debug, Default)]
pub struct CorrectionWriters(Arc<Mutex<HashSet<AppId>>>);

/// Nobody else in this process writes corrections of the application until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct CorrectionWriter {
    writers: CorrectionWriters,
    app_id: AppId,
}

impl CorrectionWriters {
    /// [`Error::AlreadyCorrecting`] if somebody writes corrections of the application now.
    pub(crate) fn begin(&self, app_id: &AppId) -> Result<CorrectionWriter, Error> {
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app_id.clone());
        if !is_first {
            return Err(Error::AlreadyCorrecting(app_id.clone()));
        }
        Ok(CorrectionWriter { writers: self.clone(), app_id: app_id.clone() })
    }
}

impl Drop for CorrectionWriter {
    fn drop(&mut self) {
        self.writers.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.app_id);
    }
}
