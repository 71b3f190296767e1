//! Runs functions on stored uplinks again, compares what comes out with what is stored, and corrects it on request.

mod compare;
mod correct;
mod made;
mod rerun;
mod summary;

use std::{collections::HashMap, sync::Arc};

use api::rest::handler::DecodeReport;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use history::{History, Query, Record, Revisions};
use server::usage::Usage;
use types::DevId;

use self::{correct::Corrector, rerun::Rerun};
use crate::{
    Error,
    application::Application,
    uplink::{Uplinks, stored::newest_revisions},
};

/// How many uplinks run at the same time: enough for all workers, few enough for the queue of one application.
const RUNNING_MAX: usize = 64;
/// How many corrections wait for the disk together.
const CORRECTED_AT_ONCE: usize = 1024;
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
    /// What running the functions costs is added here.
    pub(crate) usage: Usage,
}

/// Decodes the uplinks that are wanted. Each report says what was found since the one before, and the last one that it
/// is the last. It ends after an error: `next` of the last report says where to go on.
pub(crate) fn decode_again(parts: Parts, again: DecodeAgain) -> impl Stream<Item = Result<DecodeReport, Error>> + Send {
    let query = Query {
        kind: Some(history::Kind::Uplink),
        revisions: Revisions::Originals,
        oldest_first: again.per_device.is_none(),
        ..again.query.clone()
    };
    let batches = Box::pin(parts.history.batches(query));
    let decoder = Decoder {
        rerun: Arc::new(Rerun::new(&parts, &again)),
        corrector: Corrector::new(parts.uplinks, parts.history.clone(), &again),
        history: parts.history,
        again,
        seen: HashMap::new(),
        looked_at: 0,
        decoded: 0,
    };
    stream::try_unfold(Some((decoder, batches)), async |state| {
        let Some((mut decoder, mut batches)) = state else { return Ok(None) };
        let batch = if decoder.is_done() { None } else { batches.try_next().await? };
        match batch {
            Some(records) => Ok(Some((decoder.decode(records).await?, Some((decoder, batches))))),
            None => Ok(Some((DecodeReport { done: true, ..DecodeReport::default() }, None))),
        }
    })
}

struct Decoder {
    rerun: Arc<Rerun>,
    corrector: Corrector,
    history: Arc<History>,
    again: DecodeAgain,
    /// How many uplinks of each device were decoded, if that matters.
    seen: HashMap<DevId, usize>,
    looked_at: usize,
    decoded: usize,
}

impl Decoder {
    fn is_done(&self) -> bool {
        self.again.per_device.is_some() && (self.decoded >= PREVIEWED_MAX || self.looked_at >= LOOKED_AT_MAX)
    }

    async fn decode(&mut self, records: Vec<Record>) -> Result<DecodeReport, Error> {
        self.looked_at += records.len();
        let next = records.last().map(|record| record.id.to_string()).unwrap_or_default();
        let mut report = DecodeReport { next, ..DecodeReport::default() };
        let records = self.wanted(records);
        self.decoded += records.len();
        let mut newest = newest_revisions(&self.history, &self.again.query, &records).await?;
        let rerun = &self.rerun;
        let runs = records.into_iter().map(|record| {
            let newest = newest.remove(&record.id);
            Arc::clone(rerun).run(record, newest)
        });
        let runs = stream::iter(runs.collect::<Vec<_>>()).buffered(RUNNING_MAX);
        let mut chunks = runs.ready_chunks(CORRECTED_AT_ONCE);
        while let Some(chunk) = chunks.next().await {
            let reruns = chunk.into_iter().collect::<Result<Vec<_>, _>>()?;
            reruns.iter().for_each(|rerun| summary::add(&mut report, rerun));
            self.corrector.correct(&reruns, &mut report).await?;
        }
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
            records.truncate(PREVIEWED_MAX.saturating_sub(self.decoded));
        }
        records
    }
}
