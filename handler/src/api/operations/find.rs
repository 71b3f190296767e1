//! Finding devices, and what they sent last.

use std::time::Duration;

use ::history::{Kind, LastHeard, Page, Query, Record, Revisions};
use futures::{StreamExt, stream};
use server::{
    auth::{Caller, Purpose},
    ledger::OwnerTurn,
};
use tokio::time::{Instant, timeout_at};
use types::{AppId, ApplicationRight, DevId};

use super::Operations;
use crate::{
    Error,
    registry::device::{DeviceOrder, DeviceSearch, FoundDevices},
};

/// Maximum number of devices of which the newest uplinks are listed at once.
pub(crate) const NEWEST_DEVICES_MAX: usize = 50;
/// Maximum number of uplinks of each.
pub(crate) const NEWEST_MAX: usize = 20;
/// Maximum size of all of them in bytes, so that they fit into a response.
const NEWEST_BYTES_MAX: usize = 2 << 20;
/// Maximum size of what is read of each in bytes, with the details that are left out of the response.
const READ_BYTES_MAX: usize = 1 << 20;
/// Number of devices that are looked for at the same time.
const LOOKS_MAX: usize = 4;
/// Time after which what was not found is not known: somebody waits for a page.
const LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// Of which devices the newest uplinks are wanted, and how many of each.
pub(crate) struct NewestOf {
    pub(crate) dev_ids: Vec<DevId>,
    pub(crate) limit: usize,
}

/// The newest uplinks of devices, and the devices of which nothing is known, or whose uplinks have no room.
#[derive(Debug, Default)]
pub(crate) struct NewestUplinks {
    pub(crate) uplinks: Vec<Record>,
    pub(crate) unknown: Vec<DevId>,
}

impl Operations {
    /// Finds devices of an application, without their keys. Keep the turn until the response has been made.
    pub(crate) async fn find_devices(
        &self,
        caller: Caller,
        app_id: &AppId,
        search: &DeviceSearch,
    ) -> Result<(FoundDevices, Option<OwnerTurn>), Error> {
        let usage = caller.usage.clone();
        self.access.allow(caller, app_id, &[ApplicationRight::Devices], Purpose::Read).await?;
        self.applications.check_registered(app_id).await?;
        let turn = usage.turn_for_list().await;
        let heard = self.last_heard(app_id, search).await?;
        usage.add_entries(heard.times.len());
        Ok((self.devices.search(app_id, search, &heard, &usage).await?, turn))
    }

    /// When devices were last heard, as far as that matters for a search.
    async fn last_heard(&self, app_id: &AppId, search: &DeviceSearch) -> Result<LastHeard, Error> {
        if !self.history.keeps(app_id) {
            return Ok(LastHeard { is_partial: true, ..LastHeard::default() });
        }
        if !search.needs_last_seen() {
            return Ok(LastHeard::default());
        }
        // In this order, devices that were heard before all have the same place.
        let since = search.not_seen_since.filter(|_| search.order == DeviceOrder::Id);
        Ok(self.history.last_heard(app_id, since).await?)
    }

    /// The newest uplinks of devices, one device after the other.
    pub(crate) async fn newest_uplinks(
        &self,
        caller: Caller,
        app_id: &AppId,
        wanted: NewestOf,
    ) -> Result<NewestUplinks, Error> {
        let usage = caller.usage.clone();
        self.allow_history(caller, app_id).await?;
        let _turn = usage.turn_for_list().await;
        let NewestOf { dev_ids, limit } = wanted;
        let (end, bytes_max) = (Instant::now() + LOOK_TIME_MAX, NEWEST_BYTES_MAX / dev_ids.len().max(1));
        let looks = stream::iter(dev_ids).map(|dev_id| async move {
            let query = Query { limit, bytes_max: READ_BYTES_MAX, ..newest_of(app_id, &dev_id) };
            (dev_id, timeout_at(end, self.history.query(query)).await)
        });
        let mut looks = looks.buffered(LOOKS_MAX);
        let (mut newest, mut bytes_left) = (NewestUplinks::default(), NEWEST_BYTES_MAX);
        while let Some((dev_id, look)) = looks.next().await {
            let page = look.ok().transpose()?.filter(is_known);
            let records = page.map(|page| fitting(page.records, bytes_max));
            let bytes: usize = records.iter().flatten().map(size).sum();
            match records.zip(bytes_left.checked_sub(bytes)) {
                Some((records, left)) => {
                    bytes_left = left;
                    newest.uplinks.extend(records);
                }
                None => newest.unknown.push(dev_id),
            }
        }
        usage.add_entries(newest.uplinks.len());
        Ok(newest)
    }
}

/// All uplinks of a device, the newest first.
fn newest_of(app_id: &AppId, dev_id: &DevId) -> Query {
    let (kind, revisions) = (Some(Kind::Uplink), Revisions::Originals);
    Query { dev_id: Some(dev_id.clone()), kind, revisions, ..Query::of(app_id.clone()) }
}

/// False if there may be uplinks, but nobody knows.
fn is_known(page: &Page) -> bool {
    !page.records.is_empty() || page.skipped.iter().all(|skipped| skipped.is_foreign)
}

/// The first of these without details, as many as are of so many bytes, but at least one.
fn fitting(records: Vec<Record>, bytes_max: usize) -> Vec<Record> {
    let mut bytes = 0;
    let fits = |record: &Record| {
        let is_first = bytes == 0;
        bytes += size(record);
        is_first || bytes <= bytes_max
    };
    records.into_iter().map(without_details).take_while(fits).collect()
}

/// Metadata are left out, but not that there are some: simulated uplinks have none.
fn without_details(record: Record) -> Record {
    let empty = String::new;
    let metadata = if record.metadata.is_empty() { empty() } else { "{}".to_owned() };
    Record { metadata, extra: empty(), normalized: empty(), logs: empty(), warnings: empty(), ..record }
}

/// About the size of a record in a response, in bytes.
fn size(record: &Record) -> usize {
    size_of::<Record>() + record.payload.len() + record.result.len() + record.failure.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use ::history::{Outcome, RecordId};
    use types::Timestamp;

    use super::*;

    fn record(metadata_bytes: usize, result_bytes: usize) -> Record {
        Record {
            id: RecordId::new(1, 0, 0),
            received: Timestamp::default(),
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            kind: Kind::Uplink,
            port: 1,
            counter: 0,
            confirmed: false,
            is_retry: false,
            payload: Vec::new(),
            metadata: "m".repeat(metadata_bytes),
            extra: String::new(),
            seed: None,
            functions: None,
            version: None,
            limits: None,
            outcome: Outcome::Decoded,
            result: "r".repeat(result_bytes),
            normalized: String::new(),
            failure: None,
            logs: String::new(),
            warnings: String::new(),
            fuel: 0,
            microseconds: None,
            revision: 0,
            corrects: None,
        }
    }

    // Conformance: Devices are found by text and by when they were last seen; their newest uplinks
    #[test]
    fn details_take_no_room_from_the_newest_uplinks_and_one_is_always_there() {
        let fit = |metadata_bytes: usize, result_bytes: usize| {
            fitting(vec![record(metadata_bytes, result_bytes); NEWEST_MAX], 40_000)
        };
        let heard_by_many_gateways = fit(9000, 100);
        assert_eq!(heard_by_many_gateways.len(), NEWEST_MAX);
        assert!(heard_by_many_gateways.iter().all(|record| record.metadata == "{}" && record.result.len() == 100));
        let simulated = fit(0, 15_000);
        assert!(simulated.len() == 2 && simulated[0].metadata.is_empty());
        assert_eq!(fit(0, 50_000).len(), 1);
    }
}
