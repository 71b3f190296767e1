//! A directory of history that is only read, also while other processes record there.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::Arc,
};

use futures::Stream;
use types::AppId;

use super::limits;
use crate::{
    Error, ExportPart, Format, Kind, OwnerOf, Page, Query, Record, RecordId, Skipped,
    reader::{Reader, export},
    sealed::name,
    tail::{Tail, disk::Disk},
};

/// A directory of history that is only read, also while other processes record there.
///
/// Of what is not in Parquet files yet, it has what was there when it was opened.
pub struct StoredHistory {
    disk: Arc<Disk>,
    reader: Arc<Reader>,
    skipped: Vec<Skipped>,
}

impl StoredHistory {
    /// Opens a directory, and reads what is not in Parquet files yet. Changes nothing.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let dir = dir.into();
        fs::read_dir(&dir).map_err(Error::file("read", &dir))?;
        let (tail, skipped) = Tail::look(&Disk::tail_dir(&dir))?;
        let disk = Arc::new(Disk::new(dir, Some(Arc::new(tail))));
        let owner_of: OwnerOf = Arc::new(ToString::to_string);
        let reader = Arc::new(Reader::new(Arc::clone(&disk), None, (1, owner_of)));
        Ok(Self { disk, reader, skipped })
    }

    /// Returns the files that could not be read when it was opened.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The applications that have records.
    pub fn applications(&self) -> Result<BTreeSet<AppId>, Error> {
        let mut applications: BTreeSet<AppId> = name::applications(self.disk.root())?.into_iter().collect();
        for segment in self.disk.tail.iter().flat_map(|tail| tail.segments()) {
            segment.index(|index| {
                applications.extend(index.applications.keys().filter_map(|id| id.parse::<AppId>().ok()));
            });
        }
        Ok(applications)
    }

    /// One page of the records that are wanted.
    pub async fn query(&self, query: Query) -> Result<Page, Error> {
        self.reader.page(query).await
    }

    /// The record with this id, as [`History::get`](crate::History::get) returns it.
    pub async fn get(&self, app_id: &AppId, id: RecordId) -> Result<Result<Record, Vec<Skipped>>, Error> {
        find(&self.reader, app_id, id).await
    }

    /// The corrections of a record, as [`History::corrections`](crate::History::corrections) returns them.
    pub async fn corrections(&self, record: &Record) -> Result<Page, Error> {
        corrections(&self.reader, record).await
    }

    /// All records that are wanted as a file in parts, whatever the limit of the query.
    pub fn export(&self, query: Query, format: Format) -> impl Stream<Item = Result<ExportPart, Error>> + Send + use<> {
        export::export(self.reader.batches(query), format)
    }

    /// The limits within which the functions of a record ran, by their names; none if no function ran, or they are not
    /// known. Otherwise the file of limits, if it cannot be read or may have them in a line that has changed.
    pub fn limits(&self, record: &Record) -> Result<Result<BTreeMap<String, u64>, Skipped>, Error> {
        let limits = record.limits.map_or(Ok(BTreeMap::new()), |hash| limits::read(self.disk.root(), hash));
        limits.map_or_else(|error| Skipped::of(error).map(Err), |limits| Ok(Ok(limits)))
    }
}

/// The record with this id. Otherwise the files that could not be read and may have it.
pub(super) async fn find(
    reader: &Arc<Reader>,
    app_id: &AppId,
    id: RecordId,
) -> Result<Result<Record, Vec<Skipped>>, Error> {
    let Page { records, mut skipped, .. } = reader.page(Query::only(app_id.clone(), id)).await?;
    skipped.retain(|skipped| !skipped.is_foreign);
    Ok(records.into_iter().find(|record| record.id == id).ok_or(skipped))
}

/// The newest corrections of an uplink, the highest revision first; of equal ones the last one counts. Only originals
/// of uplinks are corrected.
pub(super) async fn corrections(reader: &Arc<Reader>, record: &Record) -> Result<Page, Error> {
    if record.kind != Kind::Uplink || record.corrects.is_some() {
        return Ok(Page::default());
    }
    let mut page = reader.page(Query::corrections_of(record)).await?;
    page.skipped.retain(|skipped| !skipped.is_foreign);
    page.records.sort_by_key(|record| Reverse(record.revision));
    Ok(page)
}
