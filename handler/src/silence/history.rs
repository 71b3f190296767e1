//! When a device was last heard, as history says: also by a process that has ended, and by other handlers.

use std::time::Duration;

use history::{Error, History, Kind, Page, Query, Revisions};
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
    let not_known = |error: Error| {
        tracing::warn!(%app_id, %dev_id, error = %ErrorChain(&error), "cannot look in history when a device was heard");
        NotKnown
    };
    let page = history.query(query).await.map_err(not_known)?;
    let newest = page.records.first().map(|record| record.id.recorded());
    if let Some(newest) = newest.filter(|newest| *newest > since && *newest <= now) {
        return Ok(Some(newest));
    }
    let is_whole = is_whole(&page) && goes_back_to(history, app_id, since).await.map_err(not_known)?;
    if is_whole { Ok(None) } else { Err(NotKnown) }
}

fn is_whole(page: &Page) -> bool {
    page.skipped.iter().all(|skipped| skipped.is_foreign)
}

/// Returns true if history has something from this time or before. Otherwise what came next may be deleted, or was
/// never kept.
async fn goes_back_to(history: &History, app_id: &AppId, time: Timestamp) -> Result<bool, Error> {
    let until = Some(time.plus(Duration::from_millis(1)));
    let page = history.query(Query { until, limit: 1, ..Query::of(app_id.clone()) }).await?;
    Ok(!page.records.is_empty())
}

/// Nobody can say when a device was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotKnown;
