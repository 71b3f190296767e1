//! Steps over many devices, as many as somebody waits for, and what a page shows of them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::Instant;
use types::{Kind, Kinded};

use crate::{
    Error, Result,
    site::failure::{Problem, log},
};

/// Maximum number of devices that are changed at the same time.
pub(super) const PARALLEL: usize = 8;
/// Time after which no further device is begun: somebody waits for the page.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum number of rows of a table.
const SHOWN_MAX: usize = 200;

/// The outcome for a device.
pub(super) enum Outcome<T> {
    Done(T),
    Failed(String),
    /// It was not begun.
    Left,
}

/// Rows of a table, and the number of those that it has no place for.
pub(super) struct Shown<T> {
    pub(super) rows: Vec<T>,
    pub(super) more: usize,
}

/// Says when to begin no further device.
pub(super) struct End {
    at: Instant,
    is_reached: AtomicBool,
}

impl<T> FromIterator<T> for Shown<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut all = all.into_iter();
        let rows = all.by_ref().take(SHOWN_MAX).collect();
        Self { rows, more: all.count() }
    }
}

impl End {
    /// An end as soon as nobody would wait any longer.
    pub(super) fn soon() -> Self {
        Self { at: Instant::now() + TIME_MAX, is_reached: AtomicBool::new(false) }
    }

    /// Takes a step, unless the end is reached.
    pub(super) async fn before<T>(&self, step: impl Future<Output = Result<T>>) -> Outcome<T> {
        if self.is_reached.load(Ordering::Relaxed) || Instant::now() >= self.at {
            return Outcome::Left;
        }
        match step.await {
            Ok(done) => Outcome::Done(done),
            Err(error) => {
                self.note(&error);
                log(&error);
                Outcome::Failed(Problem::of(&error).whole())
            }
        }
    }

    /// Ends early if the same would become of all others.
    fn note(&self, error: &Error) {
        let concerns_all = matches!(
            error.kind(),
            Kind::Exhausted | Kind::Full | Kind::Unauthenticated | Kind::Unavailable | Kind::Timeout
        );
        if concerns_all {
            self.is_reached.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns true if what was called for may have been done although the call failed: the answer was lost, or the handler
/// failed, which may have done it before, or completes it later.
pub(super) fn may_be_done(error: &client::Error) -> bool {
    let was_reached = !matches!(error, client::Error::Unreachable { .. });
    let has_failed = matches!(error.kind(), Kind::Unavailable | Kind::Internal);
    was_reached && (has_failed || error.may_have_happened())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_would_become_of_all_ends_it() {
        let end = End::soon();
        let failed = end.before(async { Err::<(), _>(Error::NotFound("device")) }).await;
        assert!(matches!(failed, Outcome::Failed(reason) if reason.contains("no such device")));
        let moving = client::Error::Refused { kind: Kind::Conflict, message: "it moves".to_owned(), retry_after: None };
        assert!(matches!(end.before(async { Err::<(), _>(moving.into()) }).await, Outcome::Failed(_)));
        assert!(matches!(end.before(async { Ok(1) }).await, Outcome::Done(1)), "they are about one device");
        end.before(async { Err::<(), _>(Error::SlowAccount) }).await;
        assert!(matches!(end.before(async { Ok(2) }).await, Outcome::Left));
    }

    #[tokio::test]
    async fn no_device_is_begun_when_the_time_is_over() {
        let end = End { at: Instant::now(), is_reached: AtomicBool::new(false) };
        assert!(matches!(end.before(async { Ok(()) }).await, Outcome::Left));
    }
}
