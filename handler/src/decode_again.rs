//! Runs functions on stored uplinks again, compares what comes out with what is stored, and corrects it on request.

mod compare;
mod correct;
mod expected_fuel;
mod made;
mod rerun;
mod source;
mod summary;

use std::{collections::VecDeque, sync::Arc};

use api::rest::handler::DecodeReport;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use history::{History, Query};
use server::usage::Usage;

use self::{
    correct::Corrector,
    rerun::{Decoding, Rerun},
    source::{Source, Stored},
};
use crate::{
    Error,
    application::Application,
    one_at_a_time::{OneAtATime, Running},
    uplink::Uplinks,
};

/// How many uplinks run one after the other, so that handing them over costs little.
const GROUP_UPLINKS: usize = 32;
/// How many groups run at the same time: enough for all workers, few enough for the queue of one application.
const GROUPS_MAX: usize = 8;
/// How many uplinks a report is of at most, and how many corrections wait for the disk together.
const REPORTED_AT_ONCE: usize = 1024;
/// How many seconds may lie between two reports while corrections are published.
const REPORT_S_MAX: usize = 5;

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
    again: &DecodeAgain,
) -> Result<impl Stream<Item = Result<DecodeReport, Error>> + Send + use<>, Error> {
    let running =
        if again.is_written { Some(parts.corrections.begin("a correction", &again.query.app_id)?) } else { None };
    let decoder = Decoder {
        source: Source::new(&parts.history, again),
        rerun: Arc::new(Rerun::new(&parts, again)),
        published_per_s: again.published_per_s,
        corrector: Corrector::new(parts.uplinks, parts.history, again),
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

struct Decoder {
    source: Source,
    rerun: Arc<Rerun>,
    published_per_s: Option<u32>,
    corrector: Corrector,
    /// Uplinks of a batch that have not run yet.
    waiting: VecDeque<Stored>,
    _running: Option<Running>,
}

impl Decoder {
    /// What was found in the next uplinks; none after the last one.
    async fn next(&mut self) -> Result<Option<DecodeReport>, Error> {
        while self.waiting.is_empty() {
            let Some(batch) = self.source.next().await? else { return Ok(None) };
            self.waiting.extend(batch);
        }
        self.decode().await.map(Some)
    }

    async fn decode(&mut self) -> Result<DecodeReport, Error> {
        let published = self.published_per_s.map_or(REPORTED_AT_ONCE, |per_s| per_s as usize * REPORT_S_MAX);
        let count = self.waiting.len().min(REPORTED_AT_ONCE).min(published.max(1));
        let decodings = self.run(count).await?;
        let next = decodings.last().map(|decoding| decoding.original.id.to_string()).unwrap_or_default();
        let mut report = DecodeReport { next, ..DecodeReport::default() };
        decodings.iter().for_each(|decoding| summary::add(&mut report, decoding));
        self.corrector.correct(&decodings, &mut report).await?;
        Ok(report)
    }

    async fn run(&mut self, count: usize) -> Result<Vec<Decoding>, Error> {
        let (rerun, waiting) = (&self.rerun, &mut self.waiting);
        let groups = (0..count).step_by(GROUP_UPLINKS).map(|first| {
            let group = waiting.drain(..GROUP_UPLINKS.min(count - first)).collect();
            Arc::clone(rerun).run(group)
        });
        stream::iter(groups.collect::<Vec<_>>()).buffered(GROUPS_MAX).try_concat().await
    }
}
