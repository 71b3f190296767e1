//! When devices were last heard, as history says: also by a process that has ended, and by other handlers.

use std::{collections::HashMap, time::Duration};

use futures::{StreamExt, stream};
use history::{Error, History, Kind, LIMIT_MAX, Page, Query, Revisions};
use server::status::ErrorChain;
use types::{AppId, DevId, Timestamp};

/// Maximum number of devices that are looked for at the same time.
const QUERIES_MAX: usize = 4;
/// Time before the last message of a process in which it may not have set an alarm; far longer than it takes.
const END: Duration = Duration::from_secs(300);
/// Maximum number of pages of those messages.
const PAGES_MAX: usize = 16;
/// The event of a join.
const JOINED: &str = "activations";

/// When each of these devices was heard after its time, if it was. Of a device that is missing, nobody can say.
pub(super) async fn heard_after(
    history: Option<&History>,
    app_id: &AppId,
    devices: &[(DevId, Timestamp)],
    now: Timestamp,
) -> HashMap<DevId, Option<Timestamp>> {
    match history.filter(|history| history.keeps(app_id) && !devices.is_empty()) {
        Some(history) => {
            let known = look(history, app_id, devices, now).await;
            known.unwrap_or_else(|error| {
                let error = ErrorChain(&error);
                tracing::warn!(%app_id, %error, "cannot look in history when devices were heard");
                HashMap::new()
            })
        }
        None => HashMap::new(),
    }
}

/// When devices were last heard in the last minutes of the process before the one that started then.
pub(super) async fn last_heard_before(
    history: &History,
    app_id: &AppId,
    started: Timestamp,
) -> Result<HashMap<DevId, Timestamp>, Error> {
    let mut last: HashMap<DevId, Timestamp> = HashMap::new();
    for kind in [Kind::Uplink, Kind::Event(JOINED.to_owned())] {
        let mut query = Query { kind: Some(kind), until: Some(started), limit: 1, ..uplinks(app_id) };
        let Some(newest) = history.query(query.clone()).await?.records.first().map(|record| record.id.recorded())
        else {
            continue;
        };
        (query.since, query.limit) = (Some(newest.minus(END)), LIMIT_MAX);
        for _ in 0..PAGES_MAX {
            let page = history.query(query.clone()).await?;
            for record in page.records {
                // The newest of each device comes first.
                let recorded = record.id.recorded();
                last.entry(record.dev_id).and_modify(|last| *last = (*last).max(recorded)).or_insert(recorded);
            }
            if page.next.is_none() {
                break;
            }
            query.before = page.next;
        }
    }
    Ok(last)
}

/// Looks at the newest uplinks of all, unless there are few devices, and for those of which they do not say enough.
async fn look(
    history: &History,
    app_id: &AppId,
    devices: &[(DevId, Timestamp)],
    now: Timestamp,
) -> Result<HashMap<DevId, Option<Timestamp>>, Error> {
    // What came before may be deleted, or was never kept.
    let first = Query { limit: 1, oldest_first: true, ..Query::of(app_id.clone()) };
    let first = history.query(first).await?.records.first().map(|record| record.id.recorded());
    let goes_back_to = |since: Timestamp| first.is_some_and(|first| first <= since);
    let since = devices.iter().map(|(_, since)| *since).min();
    let all = match devices.len() > QUERIES_MAX {
        true => Some(history.query(Query { since, limit: LIMIT_MAX, ..uplinks(app_id) }).await?),
        false => None,
    };
    let mut newest: HashMap<&DevId, Timestamp> = HashMap::new();
    for record in all.iter().flat_map(|page| &page.records) {
        let recorded = record.id.recorded();
        if recorded <= now {
            newest.entry(&record.dev_id).or_insert(recorded);
        }
    }
    let says_all = all.as_ref().is_some_and(|page| page.next.is_none() && is_whole(page));
    let (mut known, mut open) = (HashMap::new(), Vec::new());
    for (dev_id, since) in devices {
        match newest.get(dev_id).filter(|newest| *newest > since) {
            Some(newest) => _ = known.insert(dev_id.clone(), Some(*newest)),
            None if says_all && goes_back_to(*since) => _ = known.insert(dev_id.clone(), None),
            None if says_all => {}
            None => open.push((dev_id.clone(), *since)),
        }
    }
    let mut looks = stream::iter(open)
        .map(|(dev_id, since)| async move {
            let page = newest_of(history, app_id, &dev_id, since).await;
            (dev_id, since, page)
        })
        .buffer_unordered(QUERIES_MAX);
    while let Some((dev_id, since, page)) = looks.next().await {
        let page = page?;
        let newest = page.records.first().map(|record| record.id.recorded());
        match newest.filter(|newest| *newest > since && *newest <= now) {
            Some(newest) => _ = known.insert(dev_id, Some(newest)),
            None if is_whole(&page) && goes_back_to(since) => _ = known.insert(dev_id, None),
            None => {}
        }
    }
    Ok(known)
}

/// The newest uplink of a device since a time.
async fn newest_of(history: &History, app_id: &AppId, dev_id: &DevId, since: Timestamp) -> Result<Page, Error> {
    let query = Query { dev_id: Some(dev_id.clone()), since: Some(since), limit: 1, ..uplinks(app_id) };
    history.query(query).await
}

/// All uplinks of an application, without corrections, which are recorded later.
fn uplinks(app_id: &AppId) -> Query {
    Query { kind: Some(Kind::Uplink), revisions: Revisions::Originals, ..Query::of(app_id.clone()) }
}

fn is_whole(page: &Page) -> bool {
    page.skipped.iter().all(|skipped| skipped.is_foreign)
}
