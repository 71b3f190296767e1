//! Sources of a query: segments and files that can have wanted records, best first.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    Error, RecordId, Skipped,
    bucket::listing::Object,
    query::Filter,
    reader::objects::Objects,
    sealed::name::{self, FileName},
    tail::{disk::Disk, index::Index, segment::Segment},
};

/// A place of records.
#[derive(Debug)]
pub(super) enum RecordSource {
    /// A segment, with the first and the last id in it.
    Segment(Arc<Segment>, RecordId, RecordId),
    File(FileName),
    /// A file that is not here, but in the bucket.
    Object(FileName, Object),
}

/// Sources of a query.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Best first.
    pub(super) sources: Vec<RecordSource>,
    /// Files that are not ours, and days that cannot be listed.
    pub(super) foreign: Vec<Skipped>,
}

impl RecordSource {
    pub(super) fn first(&self) -> RecordId {
        match self {
            Self::Segment(_, first, _) => *first,
            Self::File(file) | Self::Object(file, _) => file.first_id(),
        }
    }

    pub(super) fn last(&self) -> RecordId {
        match self {
            Self::Segment(_, _, last) => *last,
            Self::File(file) | Self::Object(file, _) => file.last_id(),
        }
    }
}

impl Sources {
    /// Lists them while no records move between them.
    pub(super) fn list(disk: &Disk, filter: &Filter, objects: &Objects<'_>) -> Result<Self, Error> {
        let _still = disk.still();
        let mut list = Self::default();
        let elsewhere = objects.listed.iter().filter(|object| !objects.is_here(object)).cloned();
        list.sources.extend(elsewhere.filter_map(|object| Some(RecordSource::Object(object.name()?, object))));
        for segment in disk.tail.iter().flat_map(|tail| tail.segments()) {
            let ends = segment.index(|index| Some((Index::first(index)?, Index::last(index)?)));
            list.sources.extend(ends.map(|(first, last)| RecordSource::Segment(segment, first, last)));
        }
        for day in name::days(disk.root(), &filter.query.app_id)? {
            if filter.overlaps(RecordId::first(day.start), RecordId::last(day.end)) {
                let listed = list.add_day(&day);
                list.foreign.extend(listed.err().map(Skipped::of).transpose()?);
            }
        }
        list.sources.retain(|source| filter.overlaps(source.first(), source.last()));
        if filter.query.oldest_first {
            list.sources.sort_by_key(RecordSource::first);
        } else {
            list.sources.sort_by_key(|source| Reverse(source.last()));
        }
        Ok(list)
    }

    fn add_day(&mut self, day: &name::DayDir) -> Result<(), Error> {
        let files = day.files()?;
        self.sources.extend(files.files.into_iter().map(RecordSource::File));
        let foreign = |path| {
            let reason = "its name is not that of a file of history".to_owned();
            Skipped { path, reason, is_foreign: true }
        };
        self.foreign.extend(files.foreign.into_iter().map(foreign));
        Ok(())
    }
}
