//! Runs functions on stored uplinks again, compares what comes out with what is stored, and corrects it on request.

mod compare;
mod compared_result;
mod correct;
mod rerun;
mod source;
mod summary;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use api::rest::handler::DecodeReport;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use history::{History, Query};
use server::{serve::PartTurns, usage::Usage};
use tokio::time::Instant;

pub(crate) use self::source::DECODE_BYTES_MAX;
use self::{
    correct::{Corrected, Corrector},
    rerun::{Decoding, Rerun},
    source::{Batch, StoredUplinks},
};
use crate::{
    Error,
    registry::application::Application,
    uplink::{Uplinks, recorded::one_at_a_time::Running, stored::StoredUplink},
};

/// Number of uplinks that run one after the other, so that handing them over costs little.
const GROUP_UPLINKS: usize = 32;
/// Maximum number of groups that run at the same time: enough for all workers, few enough for the queue of one
/// application.
const GROUPS_MAX: usize = 8;
/// Maximum number of uplinks in a report. Their results are in memory until then.
const REPORTED_AT_ONCE: usize = 512;

/// Selects the functions to run.
#[derive(Clone, Debug)]
pub(crate) enum Functions {
    /// These on all uplinks.
    Given(Arc<Application>),
    /// On each those that ran when it came, and whatever differs counts: the same functions must give the same.
    Recorded,
}

/// Request to decode stored uplinks again.
#[derive(Debug)]
pub(crate) struct DecodeAgain {
    /// Selects the uplinks.
    pub(crate) query: Query,
    /// Selects the functions to run.
    pub(crate) functions: Functions,
    /// True if the functions run on each uplink within the limits that it had when it came.
    pub(crate) has_recorded_limits: bool,
    /// Application whose functions produce the results to compare with; none for the stored results.
    pub(crate) compared: Option<Arc<Application>>,
    /// Maximum number of uplinks of each device, from the newest on; none for all, from the oldest on.
    pub(crate) per_device: Option<usize>,
    /// Maximum number of corrections published each second; none to publish none.
    pub(crate) published_per_s: Option<u32>,
    /// Time after which it ends with its next report.
    pub(crate) time_max: Option<Duration>,
}

/// The parts of the handler that decode again.
pub(crate) struct Parts {
    pub(crate) uplinks: Arc<Uplinks>,
    pub(crate) history: Arc<History>,
    /// Ends when all is corrected; none for what corrects nothing, and may run beside others.
    pub(crate) running: Option<Running>,
    /// Receives the cost of running the functions.
    pub(crate) usage: Usage,
    /// Charges the owner for [`DECODE_BYTES_MAX`].
    pub(crate) memory: PartTurns,
}

/// Decodes the selected uplinks. Each report covers the uplinks since the one before, and the last one has `done`.
/// The stream ends after an error: continue at `next` of the last report.
pub(crate) fn decode_again(
    parts: Parts,
    again: &DecodeAgain,
) -> impl Stream<Item = Result<DecodeReport, Error>> + Send + use<> {
    let (source, rerun) = (StoredUplinks::new(&parts.history, again), Arc::new(Rerun::new(&parts, again)));
    let corrector = |running| Corrector::new((parts.uplinks, parts.history), running, again.published_per_s);
    let decoder = Decoder {
        source,
        rerun,
        corrector: parts.running.map(corrector),
        waiting: VecDeque::new(),
        decoded: Vec::new(),
        failed: None,
        unreadable_files: BTreeSet::new(),
        unchecked_files: BTreeMap::new(),
        is_cut: false,
        ends: again.time_max.map(|time_max| Instant::now() + time_max),
        _memory: parts.memory,
    };
    stream::try_unfold(Some(decoder), async |decoder| {
        let Some(mut decoder) = decoder else { return Ok(None) };
        match decoder.next().await? {
            Some(report) => Ok(Some((report, Some(decoder)))),
            None => {
                let mut last = DecodeReport { is_cut: decoder.is_cut, done: true, ..DecodeReport::default() };
                decoder.name_files(&mut last);
                Ok(Some((last, None)))
            }
        }
    })
}

struct Decoder {
    source: StoredUplinks,
    rerun: Arc<Rerun>,
    /// None if nothing is corrected.
    corrector: Option<Corrector>,
    /// Uplinks of a batch that have not run yet.
    waiting: VecDeque<StoredUplink>,
    /// Those that have run, and are not in a report yet.
    decoded: Vec<Decoding>,
    /// The error after the last report.
    failed: Option<Error>,
    /// Names of files that could not be read, until they are reported.
    unreadable_files: BTreeSet<String>,
    /// Files without checksums, until they are reported.
    unchecked_files: BTreeMap<String, u64>,
    /// True if there are more uplinks than are looked at.
    is_cut: bool,
    /// When it ends with its next report.
    ends: Option<Instant>,
    _memory: PartTurns,
}

impl Decoder {
    /// Decodes the next uplinks and reports on them; none after the last one, or when the time is over. Fails if they cannot be read, decoded or
    /// corrected.
    async fn next(&mut self) -> Result<Option<DecodeReport>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.ends.is_some_and(|ends| Instant::now() >= ends) {
            self.is_cut = true;
            return Ok(None);
        }
        while self.decoded.is_empty() && self.waiting.is_empty() {
            let Some(batch) = self.source.next().await? else { return Ok(None) };
            let Batch { uplinks, unreadable_files, unchecked_files, is_cut } = batch;
            self.is_cut |= is_cut;
            self.unreadable_files.extend(unreadable_files);
            self.unchecked_files.extend(unchecked_files);
            self.waiting.extend(uplinks);
        }
        if self.decoded.is_empty() {
            self.decoded = self.run(self.waiting.len().min(REPORTED_AT_ONCE)).await?;
        }
        self.correct().await.map(Some)
    }

    /// Corrects what is decoded if that is wanted, and reports on it. An error is for the next call if there is anything
    /// to report before.
    async fn correct(&mut self) -> Result<DecodeReport, Error> {
        let mut report = DecodeReport::default();
        let mut done = self.decoded.len();
        if let Some(corrector) = self.corrector.take() {
            let corrected = corrector.run(mem::take(&mut self.decoded)).await?;
            let Corrected { corrector, decodings, result, .. } = corrected;
            (self.corrector, self.decoded) = (Some(corrector), decodings);
            (done, report) = (corrected.done, corrected.report);
            if done == 0 {
                result?;
            } else {
                self.failed = result.err();
            }
        }
        let decodings: Vec<_> = self.decoded.drain(..done).collect();
        summary::add_all(&mut report, &decodings);
        report.next = decodings.last().map(|decoding| decoding.original.id.to_string()).unwrap_or_default();
        self.name_files(&mut report);
        Ok(report)
    }

    /// Names the files in a report that no report has named yet.
    fn name_files(&mut self, report: &mut DecodeReport) {
        report.unreadable_files = mem::take(&mut self.unreadable_files);
        report.unchecked_files = mem::take(&mut self.unchecked_files);
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
