//! Tells whoever waits for it that the store failed for good.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::sync::watch;

use crate::Error;

/// Turns a panic into an error: redb panics on some damaged pages.
///
/// Whoever gets the error must stop using the database, whose state is unknown then.
pub(super) fn panics_as_errors<T, E: From<redb::Error>>(run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let damaged = || redb::Error::Corrupted("a page is damaged".to_owned()).into();
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(damaged()))
}

/// The error that made the store fail, once it has; clones share it.
#[derive(Clone)]
pub(super) struct Failure {
    cause: watch::Sender<Option<Arc<redb::Error>>>,
}

impl Failure {
    pub(super) fn new() -> Self {
        Self { cause: watch::Sender::new(None) }
    }

    /// Reports why the store failed. Later failures follow from the first, so they are not kept.
    pub(super) fn report(&self, cause: Arc<redb::Error>) {
        self.cause.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(cause);
            is_first
        });
    }

    /// Reports the cause of a failed read if the disk is to blame: redb reads nothing more after that.
    pub(super) fn of_read(&self, error: Error) -> Error {
        let Error::Unavailable { what, source: Some(source) } = error else { return error };
        match source.downcast::<redb::Error>() {
            Ok(cause) if matches!(*cause, redb::Error::Io(_) | redb::Error::PreviousIo | redb::Error::Corrupted(_)) => {
                let cause: Arc<redb::Error> = Arc::from(cause);
                tracing::error!(error = %cause, "the store cannot be read: check the disk, then restart");
                self.report(Arc::clone(&cause));
                Error::unavailable(what, cause)
            }
            Ok(cause) => Error::unavailable(what, cause),
            Err(source) => Error::Unavailable { what, source: Some(source) },
        }
    }

    /// Waits until the store fails.
    pub(super) fn wait(&self) -> impl Future<Output = Arc<redb::Error>> + Send + use<> {
        let mut cause = self.cause.subscribe();
        async move {
            match cause.wait_for(Option::is_some).await.map(|cause| cause.clone()) {
                Ok(Some(cause)) => cause,
                // The store was closed without a failure.
                _ => pending().await,
            }
        }
    }
}
