//! When a device was last heard, as history says: also by a process that has ended, and by other handlers.

use history::{History, Kind, Query, Revisions};
use server::status::ErrorChain;
use types::{AppId, DevId, Timestamp};

/// When a device was heard after this time, if it was. An error if nobody can say.
pub(super) async fn heard_after(
    history: Option<&History>,
    (app_id, dev_id): (&AppId, &DevId),
    since: Timestamp,
    now: Timestamp,
) -> Result<Option<Timestamp>, NotKnown> {
    let history = history.filter(|history| history.keeps(app_id)).ok_or(NotKnown)?;
    let query = Query {
        dev_id: Some(dev_id.clone()),
        since: Some(since),
        kind: Some(Kind::Uplink),
        // Corrections are recorded later.
        revisions: Revisions::Originals,
        limit: 1,
        ..Query::of(app_id.clone())
    };
    let page = history.query(query).await.map_err(|error| {
        tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot look in history when a device was heard");
        NotKnown
    })?;
    let newest = page.records.first().map(|record| record.id.recorded());
    match newest.filter(|newest| *newest > since && *newest <= now) {
        None if page.skipped.iter().any(|skipped| !skipped.is_foreign) => Err(NotKnown),
        newest => Ok(newest),
    }
}

/// Nobody can say when a device was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotKnown;
