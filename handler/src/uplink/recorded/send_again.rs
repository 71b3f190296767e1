//! Sends stored messages again, behind live messages, and reports the results.

mod prepare;
mod summary;

use std::{collections::VecDeque, pin::Pin, sync::Arc, time::Duration};

use api::rest::handler::SendReport;
use futures::{Stream, TryStreamExt, stream};
use history::{History, Page, Query, Record, Revisions};
use tokio::time::sleep;

use self::prepare::{Fate, Prepared, prepare};
use crate::{
    Error,
    output::{Message, Receivers, rooms::Rooms},
    uplink::{
        Uplinks,
        recorded::one_at_a_time::Running,
        stored::{StoredUplink, UnreadableFiles, with_corrections},
    },
};

/// Maximum number of messages looked at together, and of bytes that are sent of them.
const TOGETHER_MAX: usize = 32;
const TOGETHER_BYTES_MAX: usize = 256 << 10;

/// Request to send stored messages again.
#[derive(Clone, Debug)]
pub(crate) struct SendAgain {
    /// Selects the messages, the oldest first.
    pub(crate) query: Query,
    /// Selects the receivers.
    pub(crate) to: Receivers,
    /// Maximum number of messages sent each second.
    pub(crate) per_s: u32,
    /// True to only count them.
    pub(crate) is_dry_run: bool,
}

/// The parts of the handler that send again.
pub(crate) struct Parts {
    pub(crate) uplinks: Arc<Uplinks>,
    pub(crate) history: Arc<History>,
    /// Ends when all is sent; none for what may run beside others.
    pub(crate) running: Option<Running>,
}

/// Sends the messages that are wanted. Each report says what became of those since the one before, and the last one
/// that it is the last. It ends after an error: `next` of the last report says where to go on.
pub(crate) fn send_again(parts: Parts, again: SendAgain) -> impl Stream<Item = Result<SendReport, Error>> + Send {
    let query = Query { revisions: Revisions::Originals, oldest_first: true, ..again.query.clone() };
    let sender = Sender {
        pages: Box::pin(parts.history.batches(query)),
        rooms: Rooms::new(parts.uplinks.output.clone(), again.to.clone()),
        parts,
        together_max: together_max(&again),
        again,
        records: VecDeque::new(),
        waiting: VecDeque::new(),
        unreadable: UnreadableFiles::default(),
    };
    stream::try_unfold(Some(sender), async |sender| {
        let Some(mut sender) = sender else { return Ok(None) };
        match sender.next().await? {
            Some(report) => Ok(Some((report, Some(sender)))),
            None => {
                let unreadable_files = sender.unreadable.take_new().into_iter().collect();
                Ok(Some((SendReport { unreadable_files, done: true, ..SendReport::default() }, None)))
            }
        }
    })
}

/// The message of a record as it would be sent again; none if its device is gone, or nobody gets it.
pub(crate) async fn message_again(uplinks: &Uplinks, record: Record) -> Result<Option<Message>, Error> {
    match prepare(uplinks, record, None).await?.fate {
        Fate::Sent(message) => Ok(Some(*message)),
        Fate::DeviceGone | Fate::NeverPublished | Fate::Unreadable => Ok(None),
    }
}

/// So few that there are several reports each second.
fn together_max(again: &SendAgain) -> usize {
    if again.is_dry_run { TOGETHER_MAX } else { (again.per_s as usize / 10).clamp(1, TOGETHER_MAX) }
}

struct Sender {
    parts: Parts,
    again: SendAgain,
    pages: Pin<Box<dyn Stream<Item = Result<Page, history::Error>> + Send>>,
    rooms: Rooms,
    together_max: usize,
    records: VecDeque<StoredUplink>,
    /// Those that are to be sent next.
    waiting: VecDeque<Prepared>,
    unreadable: UnreadableFiles,
}

impl Sender {
    /// Sends a few messages; none if there are no more.
    async fn next(&mut self) -> Result<Option<SendReport>, Error> {
        self.fill().await?;
        let unreadable_files = self.unreadable.take_new().into_iter().collect();
        let mut report = SendReport { unreadable_files, ..SendReport::default() };
        while let Some(skipped) = self.waiting.pop_front_if(|first| !matches!(first.fate, Fate::Sent(_))) {
            summary::add_skipped(&mut report, &skipped);
        }
        if !self.waiting.is_empty() {
            self.send(&mut report).await?;
        }
        Ok((report.examined > 0 || !report.unreadable_files.is_empty()).then_some(report))
    }

    /// Has messages prepared, unless there are no more.
    async fn fill(&mut self) -> Result<(), Error> {
        while self.records.is_empty() && self.waiting.is_empty() {
            let Some(Page { records, skipped, .. }) = self.pages.try_next().await? else { return Ok(()) };
            self.unreadable.add(&skipped);
            let (history, query) = (&self.parts.history, &self.again.query);
            self.records.extend(with_corrections(history, query, records, &mut self.unreadable).await?);
        }
        while self.waiting.len() < self.together_max
            && let Some((record, newest)) = self.records.pop_front()
        {
            self.waiting.push_back(prepare(&self.parts.uplinks, record, newest).await?);
        }
        Ok(())
    }

    /// Sends those at the front for which there is room.
    async fn send(&mut self, report: &mut SendReport) -> Result<(), Error> {
        let messages: Vec<Message> = self.waiting.iter().map_while(Prepared::message).cloned().collect();
        if self.again.is_dry_run {
            return self.count(&messages, report).await;
        }
        let room = match self.rooms.wait(&messages).await {
            // What was skipped before is reported, and then the error.
            Err(Error::NoRoom(_)) if report.examined > 0 => return Ok(()),
            room => room?,
        };
        self.parts.running.as_ref().map_or(Ok(()), Running::check)?;
        let count = fitting(&messages, room.messages, room.bytes.min(TOGETHER_BYTES_MAX));
        let messages = &messages[..count.min(messages.len())];
        let receipts = self.parts.uplinks.output.publish_again(messages, &self.again.to).await?;
        for receipt in receipts {
            let Some(sent) = self.waiting.pop_front() else { break };
            summary::add_sent(report, &sent, receipt);
        }
        // More could push live messages out of the queues of receivers, and would take their time.
        sleep(Duration::from_secs(1) * u32::try_from(messages.len()).unwrap_or(1) / self.again.per_s.max(1)).await;
        Ok(())
    }

    /// Counts what would be sent.
    async fn count(&mut self, messages: &[Message], report: &mut SendReport) -> Result<(), Error> {
        for message in messages {
            let has_receiver = self.rooms.have_receiver(message).await?;
            let Some(counted) = self.waiting.pop_front() else { break };
            summary::add_counted(report, &counted, has_receiver);
        }
        Ok(())
    }
}

/// Returns the number of these messages that fit, at least one.
fn fitting(messages: &[Message], count_max: usize, bytes_max: usize) -> usize {
    let mut bytes = 0_usize;
    let fits = |message: &&Message| {
        bytes = bytes.saturating_add(message.bytes());
        bytes <= bytes_max
    };
    messages.iter().take(count_max).take_while(fits).count().max(1)
}
