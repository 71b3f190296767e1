//! Changes that must be audited: each leaves a line, also if nobody learns how it ended.

use std::fmt::Display;

use types::{Kind, Kinded};

use super::{AuditError, AuditLog, TARGET};

/// A change that must be audited, from before it begins until its outcome is recorded.
///
/// If it is dropped before that, as when a request is cancelled or panics, its outcome is recorded as unknown.
#[derive(Debug)]
#[must_use = "a change that must be audited is recorded when it is done"]
pub struct Change<'a> {
    audit: &'a AuditLog,
    event: &'static str,
    actor: String,
    object: String,
    has_ended: bool,
}

impl AuditLog {
    /// Begins a change: `actor` is about to change `object`, as `event` says.
    ///
    /// Refused while the file cannot be written, and if the actor makes too many changes.
    pub fn change(
        &self,
        event: &'static str,
        actor: &dyn Display,
        object: &dyn Display,
    ) -> Result<Change<'_>, AuditError> {
        self.check()?;
        let (actor, object) = (actor.to_string(), object.to_string());
        self.0.limiter.take(&actor).map_err(AuditError::TooManyChanges)?;
        Ok(Change { audit: self, event, actor, object, has_ended: false })
    }
}

impl Change<'_> {
    /// Makes the change and records its outcome.
    pub async fn run<T, E: Kinded>(self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let outcome = work.await;
        self.end(&outcome);
        outcome
    }

    /// Like [`Change::run`]; `object` names the changed object when that is only known afterwards.
    pub async fn run_on<T, E: Kinded>(
        mut self,
        work: impl Future<Output = Result<T, E>>,
        object: impl FnOnce(&T) -> String,
    ) -> Result<T, E> {
        let outcome = work.await;
        if let Ok(done) = &outcome {
            self.object = object(done);
        }
        self.end(&outcome);
        outcome
    }

    /// Sets who made the change, when that is only known afterwards.
    pub fn set_actor(&mut self, actor: &dyn Display) {
        self.actor = actor.to_string();
    }

    /// Records the outcome: nothing if the change was refused, and "unknown" if it failed after it may have begun.
    pub fn end<T, E: Kinded>(self, outcome: &Result<T, E>) {
        match outcome {
            Ok(_) => self.done(),
            Err(error) if is_refusal(error.kind()) => self.not_made(),
            Err(_) => drop(self),
        }
    }

    /// Records that the change was made. Changes are always written.
    pub fn done(mut self) {
        self.has_ended = true;
        self.audit.write(self.event, &self.actor, &self.object);
        self.audit.0.changes.notify_one();
    }

    /// Ends it without a line, because nothing changed.
    pub fn not_made(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let Self { event, actor, object, .. } = &*self;
        tracing::info!(target: TARGET, event, %actor, %object, outcome = "unknown");
        self.audit.report_written();
        self.audit.0.changes.notify_one();
    }
}

/// Returns true if an error of this kind says that nothing was changed. A store may have changed what it could not
/// confirm.
fn is_refusal(kind: Kind) -> bool {
    !matches!(kind, Kind::Unavailable | Kind::Timeout | Kind::Internal)
}
