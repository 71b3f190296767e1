//! Batches of simulated uplinks: a stream of them comes in, and what became of each goes out, in the same order.
//!
//! They are handled in groups, so that each costs little more than its run in the sandbox. At most two groups of a
//! batch are handled at a time, and a third one is read meanwhile; nothing more is read before what became of the first
//! one is taken. A group is handled to its end, also if nobody reads on.

mod group;

use std::{collections::VecDeque, mem, panic::resume_unwind, sync::Arc, time::Duration};

use futures::{FutureExt, Stream, StreamExt, stream};
use server::serve::PartTurns;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use tracing::Instrument;

pub(crate) use self::group::{BatchAnswer, BatchParts, GroupAnswers};
use self::group::{GROUP_BYTES_MAX, Lines};
use crate::{Error, uplink::Frame};

/// Maximum number of groups that are handled at the same time: while one is in the sandbox, the other is looked up or
/// published.
const GROUPS_MAX: usize = 2;
/// Maximum length of an uplink in a batch, in bytes; most are much shorter.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024;
/// Maximum memory that the uplinks of a batch take, in bytes: of those that are handled, and those that are read, of
/// which one is not complete.
pub(crate) const BATCH_BYTES_MAX: usize = (GROUPS_MAX + 1) * GROUP_BYTES_MAX + LINE_BYTES_MAX;
/// Maximum time that a batch waits for its next uplink.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(60);

/// An uplink of a batch.
pub(crate) struct Line {
    /// Its place in the batch, from 1.
    pub(crate) number: u64,
    /// The number of bytes that have come for it.
    pub(crate) bytes: usize,
    /// The uplink, or the error if it cannot be handled.
    pub(crate) frame: Result<Frame, Error>,
}

/// A part of the response to a batch.
pub(crate) enum Event {
    /// The answers to some uplinks.
    Answers(GroupAnswers),
    /// The batch has ended early: from this uplink on, none was handled.
    Ended(u64, Error),
}

/// Handles a batch. An error in `lines` ends it.
pub(crate) fn handle(
    parts: BatchParts,
    turns: PartTurns,
    lines: impl Stream<Item = Result<Line, Error>> + Send + Unpin + 'static,
) -> impl Stream<Item = Event> + Send + 'static {
    let batch = Batch {
        parts: Arc::new(parts),
        turns,
        lines,
        waiting: Lines::default(),
        running: VecDeque::new(),
        published: None,
        next: 1,
        state: BatchState::Reading,
        pause_ends: Instant::now() + PAUSE_MAX,
    };
    stream::unfold(batch, async |mut batch| Some((batch.next().await?, batch)))
}

struct Batch<L> {
    parts: Arc<BatchParts>,
    turns: PartTurns,
    lines: L,
    /// The group that is being read.
    waiting: Lines,
    /// Those that are being handled, the first one first.
    running: VecDeque<JoinHandle<GroupAnswers>>,
    /// When the last one of these has been published.
    published: Option<oneshot::Receiver<()>>,
    /// The first uplink that has not been read.
    next: u64,
    state: BatchState,
    pause_ends: Instant,
}

enum BatchState {
    Reading,
    /// Nothing more is read, and this is said at the end.
    Ending(Option<Error>),
    Ended,
}

/// The next thing that a batch does.
enum Step {
    Read,
    Answer(GroupAnswers),
    Start,
    Stop,
    Pause,
}

impl<L: Stream<Item = Result<Line, Error>> + Send + Unpin> Batch<L> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.running.is_empty() && self.waiting.is_empty() && !matches!(self.state, BatchState::Reading) {
                let BatchState::Ending(error) = mem::replace(&mut self.state, BatchState::Ended) else { return None };
                return error.map(|error| Event::Ended(self.next, error));
            }
            match self.step().await {
                Step::Read => {}
                Step::Answer(answers) => {
                    if answers.is_last() {
                        self.end(None);
                    }
                    self.pause_ends = Instant::now() + PAUSE_MAX;
                    return Some(Event::Answers(answers));
                }
                Step::Start => self.start(),
                Step::Stop => self.end(Some(Error::Stopping)),
                Step::Pause => self.end(Some(Error::Paused { wait_s: PAUSE_MAX.as_secs() })),
            }
        }
    }

    async fn step(&mut self) -> Step {
        let is_reading = matches!(self.state, BatchState::Reading);
        let can_start = self.running.len() < GROUPS_MAX && !self.waiting.is_empty();
        let is_idle = self.running.is_empty() && self.waiting.is_empty();
        let has_room = is_reading && !self.waiting.is_full();
        if has_room && let Some(line) = self.lines.next().now_or_never() {
            self.read(line);
            return Step::Read;
        }
        if can_start {
            // The group is full, or the sender pauses: what is there must not wait for more.
            return Step::Start;
        }
        tokio::select! {
            biased;
            () = self.turns.stopping(), if is_reading => Step::Stop,
            line = self.lines.next(), if has_room => {
                self.read(line);
                Step::Read
            }
            answers = first(&mut self.running), if !self.running.is_empty() => Step::Answer(answers),
            () = sleep_until(self.pause_ends), if is_reading && is_idle => Step::Pause,
        }
    }

    fn read(&mut self, line: Option<Result<Line, Error>>) {
        match line {
            Some(Ok(line)) => {
                self.next = line.number + 1;
                self.waiting.push(line);
            }
            Some(Err(error)) => self.state = BatchState::Ending(Some(error)),
            None => self.state = BatchState::Ending(None),
        }
    }

    /// Gives up what was not begun.
    fn end(&mut self, error: Option<Error>) {
        self.next = self.first_waiting();
        self.waiting = Lines::default();
        self.state = BatchState::Ending(error);
    }

    fn first_waiting(&self) -> u64 {
        self.waiting.first().unwrap_or(self.next)
    }

    /// Begins to handle the group that was read.
    fn start(&mut self) {
        let (published, receiver) = oneshot::channel();
        let previous = self.published.replace(receiver);
        let (parts, lines) = (Arc::clone(&self.parts), mem::take(&mut self.waiting));
        // In this order the groups take their turns, too.
        let turn = self.turns.take(lines.bytes());
        let turns = self.turns.clone();
        let handle = async move {
            let answers = match turn.await {
                Ok(turn) => turn.run(parts.handle(lines, turn.usage(), (previous, published))).await,
                Err(refusal) => lines.refused(refusal.into()),
            };
            answers.held_by(&turns)
        };
        self.running.push_back(tokio::spawn(handle.in_current_span()));
    }
}

/// The answers to the first group, once it is handled.
async fn first(running: &mut VecDeque<JoinHandle<GroupAnswers>>) -> GroupAnswers {
    let Some(group) = running.front_mut() else { return std::future::pending().await };
    let answers = match group.await {
        Ok(answers) => answers,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The process ends, and nobody waits any more.
            Err(_) => std::future::pending().await,
        },
    };
    running.pop_front();
    answers
}
