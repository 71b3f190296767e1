//! Runs functions on stored uplinks again, compares what comes out with what is stored, and corrects it on request.

mod compare;
mod correct;
mod made;
mod rerun;
mod summary;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use api::rest::handler::DecodeReport;
use futures::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use history::{History, Query, Record, Revisions};
use server::usage::Usage;
use types::DevId;

use self::{correct::Corrector, rerun::Rerun};
use crate::{
    Error,
    application::Application,
    one_at_a_time::{OneAtATime, Running},
    uplink::{Uplinks, stored::newest_revisions},
};

/// How many uplinks run at the same time: enough for all workers, few enough for the queue of one application.
const RUNNING_MAX: usize = 64;
/// How many uplinks a report is of at most, and how many corrections wait for the disk together.
const REPORTED_AT_ONCE: usize = 1024;
/// How many seconds may lie between two reports while corrections are published.
const REPORT_S_MAX: usize = 5;
/// How many uplinks are decoded at most, and looked at, if only some of each device are wanted.
const PREVIEWED_MAX: usize = 100_000;
const LOOKED_AT_MAX: usize = 1_000_000;

/// Which functions run.
#[derive(Clone, Debug)]
pub(crate) enum Functions {
    /// These on all uplinks.
    Given(Arc<Application>),
    /// On each those that ran when it came, and whatever differs counts: the same functions must give the same.
    Recorded,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct DecodeAgain {
    /// Which uplinks.
    pub(crate) query: Query,
    /// Which functions run.
    pub(crate) functions: Functions,
    /// The application whose functions made what is compared; none for what is stored.
    pub(crate) compared: Option<Arc<Application>>,
    /// How many uplinks of each device, from the newest on; none for all, from the oldest on.
    pub(crate) per_device: Option<usize>,
    /// Whether what has changed is kept as a correction.
    pub(crate) is_written: bool,
    /// How many corrections are published each second at most; none to publish none.
    pub(crate) published_per_s: Option<u32>,
}

/// The parts of the handler that decode again.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) uplinks: Arc<Uplinks>,
    pub(crate) history: Arc<History>,
    /// Corrections, each of which gives the next revision to what it found.
    pub(crate) corrections: OneAtATime,
    /// What running the functions costs is added here.
    pub(crate) usage: Usage,
}

/// Decodes the uplinks that are wanted. Each report says what was found since the one before, and the last one that it
/// is the last. It ends after an error: `next` of the last report says where to go on.
pub(crate) fn decode_again(
    parts: Parts,
    again: DecodeAgain,
) -> Result<impl Stream<Item = Result<DecodeReport, Error>> + Send, Error> {
    let running =
        if again.is_written { Some(parts.corrections.begin("a correction", &again.query.app_id)?) } else { None };
    let query = Query {
        kind: Some(history::Kind::Uplink),
        revisions: Revisions::Originals,
        oldest_first: again.per_device.is_none(),
        ..again.query.clone()
    };
    let decoder = Decoder {
        batches: parts.history.batches(query).boxed(),
        rerun: Arc::new(Rerun::new(&parts, &again)),
        corrector: Corrector::new(parts.uplinks, parts.history.clone(), &again),
        history: parts.history,
        again,
        seen: HashMap::new(),
        looked_at: 0,
        taken: 0,
        waiting: VecDeque::new(),
        _running: running,
    };
    Ok(stream::try_unfold(Some(decoder), async |decoder| {
        let Some(mut decoder) = decoder else { return Ok(None) };
        match decoder.next().await? {
            Some(report) => Ok(Some((report, Some(decoder)))),
            None => Ok(Some((DecodeReport { done: true, ..DecodeReport::default() }, None))),
        }
    }))
}

type Batches = BoxStream<'static, Result<Vec<Record>, history::Error>>;

struct Decoder {
    batches: Batches,
    rerun: Arc<Rerun>,
    corrector: Corrector,
    history: Arc<History>,
    again: DecodeAgain,
    /// How many uplinks of each device were taken, if that matters.
    seen: HashMap<DevId, usize>,
    looked_at: usize,
    taken: usize,
    /// Uplinks of a batch, with their newest corrections, that have not run yet.
    waiting: VecDeque<(Record, Option<Record>)>,
    _running: Option<Running>,
}

impl Decoder {
    /// What was found in the next uplinks; none after the last one.
    async fn next(&mut self) -> Result<Option<DecodeReport>, Error> {
        while self.waiting.is_empty() {
            let batch = if self.is_done() { None } else { self.batches.try_next().await? };
            let Some(records) = batch else { return Ok(None) };
            self.take(records).await?;
        }
        self.decode().await.map(Some)
    }

    fn is_done(&self) -> bool {
        self.again.per_device.is_some() && (self.taken >= PREVIEWED_MAX || self.looked_at >= LOOKED_AT_MAX)
    }

    async fn take(&mut self, records: Vec<Record>) -> Result<(), Error> {
        self.looked_at += records.len();
        let records = self.wanted(records);
        self.taken += records.len();
        let mut newest = newest_revisions(&self.history, &self.again.query, &records).await?;
        self.waiting.extend(records.into_iter().map(|record| {
            let newest = newest.remove(&record.id);
            (record, newest)
        }));
        Ok(())
    }

    async fn decode(&mut self) -> Result<DecodeReport, Error> {
        let published = self.again.published_per_s.map_or(REPORTED_AT_ONCE, |per_s| per_s as usize * REPORT_S_MAX);
        let count = self.waiting.len().min(REPORTED_AT_ONCE).min(published.max(1));
        let rerun = &self.rerun;
        let runs = self.waiting.drain(..count).map(|(record, newest)| Arc::clone(rerun).run(record, newest));
        let runs = stream::iter(runs.collect::<Vec<_>>()).buffered(RUNNING_MAX);
        let decodings: Vec<_> = runs.try_collect().await?;
        let next = decodings.last().map(|decoding| decoding.original.id.to_string()).unwrap_or_default();
        let mut report = DecodeReport { next, ..DecodeReport::default() };
        decodings.iter().for_each(|decoding| summary::add(&mut report, decoding));
        self.corrector.correct(&decodings, &mut report).await?;
        Ok(report)
    }

    /// Those of these records that are among the newest of their device, if that matters.
    fn wanted(&mut self, mut records: Vec<Record>) -> Vec<Record> {
        if let Some(per_device) = self.again.per_device {
            let seen = &mut self.seen;
            records.retain(|record| {
                let count = seen.entry(record.dev_id.clone()).or_default();
                *count += 1;
                *count <= per_device
            });
            records.truncate(PREVIEWED_MAX.saturating_sub(self.taken));
        }
        records
    }
}
