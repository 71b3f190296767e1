//! Reads charts: first what uplinks were corrected to, then the uplinks, in one turn of their application.

use std::{
    cell::Cell,
    collections::BTreeSet,
    mem,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
};

use futures::TryStreamExt;
use parking_lot::Mutex;

use super::{
    Reader, in_threads,
    objects::Objects,
    sources::{RecordSource, Sources},
};
use crate::{
    Error, RecordId, Skipped,
    chart::{Chart, ChartQuery, collector::Collector, corrections::Corrections, overlaps::Overlaps},
    directory::removed::Removals,
    query::Filter,
    sealed::{file::SealedFile, search::chart as sealed_chart},
    tail::chart as tail_chart,
};

impl Reader {
    /// A chart, when it is the application's turn.
    pub(crate) async fn chart(self: &Arc<Self>, query: ChartQuery) -> Result<Chart, Error> {
        let mut skipped = BTreeSet::new();
        let corrections = self.corrections(&query, &mut skipped).await?;
        let app_id = query.app_id.clone();
        let read = move |reader: &Self, is_stopped: &AtomicBool| reader.attempt_chart(&query, &corrections, is_stopped);
        let mut chart = self.in_turn(&app_id, read).await?;
        skipped.extend(chart.skipped);
        chart.skipped = skipped.into_iter().collect();
        Ok(chart)
    }

    /// The corrections of the uplinks: also those after the end of the chart.
    async fn corrections(
        self: &Arc<Self>,
        query: &ChartQuery,
        skipped: &mut BTreeSet<Skipped>,
    ) -> Result<Corrections, Error> {
        let ids = Filter::new(query.originals(), Removals::default()).ids;
        let mut corrections = Corrections::default();
        let mut pages = pin!(self.batches(query.corrections(*ids.start(), *ids.end())));
        while let Some(page) = pages.try_next().await? {
            skipped.extend(page.skipped);
            page.records.into_iter().for_each(|record| corrections.add(record));
        }
        Ok(corrections)
    }

    fn attempt_chart(
        &self,
        query: &ChartQuery,
        corrections: &Corrections,
        is_stopped: &AtomicBool,
    ) -> Result<Chart, Error> {
        let (app_id, dev_id) = (query.app_id.as_str(), query.dev_id.as_str());
        let mut objects = Objects::look(self.bucket.as_ref(), app_id)?;
        let removals = self.disk.removals()?.with(mem::take(&mut objects.removed));
        let removed = removals.last(app_id, dev_id).map_or(RecordId::first(0), RecordId::next);
        let mut filter = Filter::new(query.originals(), removals);
        let first = *filter.ids.start();
        filter.ids = first.max(removed).max(corrections.from())..=*filter.ids.end();
        let is_cut = corrections.from() > first.max(removed);
        let Sources { sources, mut foreign } = Sources::list(&self.disk, &filter, &objects)?;
        foreign.extend(objects.skipped.take());
        let overlaps = Overlaps::of(sources.iter().map(|source| (source.first(), source.last())));
        let collector = Collector::new(query, corrections, overlaps, is_stopped);
        let skipped = Mutex::new(foreign);
        let skip = |file| skipped.lock().push(file);
        in_threads(&sources, &|source| {
            collector.check()?;
            if collector.admits_any(source.last()) {
                read(source, &objects, (&filter, &collector), &skip)
            } else {
                Ok(())
            }
        })?;
        let mut skipped = skipped.into_inner();
        skipped.sort();
        skipped.dedup();
        self.report(&skipped);
        Ok(collector.into_chart(is_cut, skipped))
    }
}

fn read(
    source: &RecordSource,
    objects: &Objects<'_>,
    (filter, collector): (&Filter, &Collector<'_>),
    skip: &dyn Fn(Skipped),
) -> Result<(), Error> {
    let done = Cell::new(0);
    let read = |file: &SealedFile| sealed_chart::read(file, (filter, collector), &done);
    let result = match source {
        RecordSource::Segment(segment, ..) => tail_chart::read(segment, (filter, collector), skip),
        RecordSource::File(file) => SealedFile::read(&file.path, read),
        RecordSource::Object(_, object) => objects.read(object, filter, read),
    };
    result.or_else(|error| Skipped::of(error).map(skip))
}
