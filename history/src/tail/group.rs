//! The group of records that is written next, and who waits for it.

use std::{
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use types::Clock;

use crate::{
    Kept, Loss, NewRecord, RECORD_BYTES_MAX, RecordId,
    kept::Losses,
    moment,
    record::View,
    tail::{codec, numbers::Numbers},
};

/// How long the records of a block become, in bytes, before the next one is begun.
const BLOCK_BYTES: usize = 256 << 10;

/// Takes records, and hands them to the thread that writes.
pub(crate) struct Queue {
    clock: Arc<dyn Clock>,
    bytes_max: usize,
    wait: Duration,
    pub(crate) losses: Arc<Losses>,
    state: Mutex<State>,
    changed: Condvar,
    /// Whether a record has waited for too long, and none has been written since.
    is_slow: Arc<AtomicBool>,
}

struct State {
    numbers: Numbers,
    next: Group,
    /// The bytes of the group that is being written.
    writing: usize,
    is_closed: bool,
}

/// Records that are written with one sync.
pub(crate) struct Group {
    pub(crate) blocks: Vec<RawBlock>,
    pub(crate) records: u64,
    bytes: usize,
    done: watch::Sender<Option<Result<(), Loss>>>,
}

/// The records of a block, as `codec` has them.
#[derive(Default)]
pub(crate) struct RawBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u32,
}

/// A record on its way to the disk.
pub(crate) struct Pending {
    id: RecordId,
    wait: Duration,
    done: watch::Receiver<Option<Result<(), Loss>>>,
    is_slow: Arc<AtomicBool>,
    losses: Arc<Losses>,
}

impl Default for Group {
    fn default() -> Self {
        Self { blocks: Vec::new(), records: 0, bytes: 0, done: watch::Sender::new(None) }
    }
}

impl Group {
    fn push(&mut self, view: &View<'_>) {
        if self.blocks.last().is_none_or(|block| block.bytes.len() >= BLOCK_BYTES) {
            self.blocks.push(RawBlock::default());
        }
        let Some(block) = self.blocks.last_mut() else { return };
        let before = block.bytes.len();
        codec::encode(view, &mut block.bytes);
        block.records += 1;
        self.records += 1;
        self.bytes += block.bytes.len() - before;
    }
}

impl Queue {
    pub(crate) fn new(clock: Arc<dyn Clock>, writer: u32, bytes_max: usize, wait: Duration) -> Self {
        let state = State { numbers: Numbers::new(writer), next: Group::default(), writing: 0, is_closed: false };
        Self {
            clock,
            bytes_max,
            wait,
            losses: Arc::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_slow: Arc::default(),
        }
    }

    /// Adds a record to the group that is written next.
    pub(crate) fn push(&self, new: &NewRecord<'_>) -> Result<Pending, Loss> {
        let bytes = codec::bytes_max(&View::of_new(RecordId::first(0), new));
        if bytes > RECORD_BYTES_MAX {
            return Err(Loss::TooLarge);
        }
        let now = moment::millis(self.clock.now());
        let mut state = self.state();
        let waiting = state.next.bytes + state.writing;
        // One record may always wait, whatever the bound.
        if state.is_closed || (waiting > 0 && waiting + bytes > self.bytes_max) {
            return Err(if state.is_closed { Loss::Closed } else { Loss::Queue });
        }
        let id = state.numbers.next(now);
        state.next.push(&View::of_new(id, new));
        let done = state.next.done.subscribe();
        let is_first = state.next.records == 1;
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
        let (is_slow, losses) = (Arc::clone(&self.is_slow), Arc::clone(&self.losses));
        Ok(Pending { id, wait: self.wait, done, is_slow, losses })
    }

    /// Waits for records. None once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Group> {
        let mut state = self.state();
        while state.next.records == 0 {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let group = mem::take(&mut state.next);
        state.writing = group.bytes;
        Some(group)
    }

    /// Tells who waits for a group what became of it.
    pub(crate) fn done(&self, group: &Group, result: Result<(), Loss>) {
        self.state().writing = 0;
        if let Err(loss) = result {
            self.losses.add(loss, group.records);
        }
        self.is_slow.store(false, Ordering::Relaxed);
        group.done.send_replace(Some(result));
    }

    /// Takes no more records.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Waits until the record is on disk, but not for long.
    pub(crate) async fn wait(mut self) -> Kept {
        // Once the disk is known to be slow, messages pass without each waiting for it.
        let is_slow = self.is_slow.load(Ordering::Relaxed) && self.done.borrow().is_none();
        if is_slow {
            return self.slow();
        }
        let done = tokio::time::timeout(self.wait, self.done.wait_for(Option::is_some)).await;
        match done.map(|done| done.map(|done| *done)) {
            Ok(Ok(Some(Ok(())))) => Kept::Yes(self.id),
            Ok(Ok(Some(Err(loss)))) => Kept::No(loss),
            Ok(Ok(None) | Err(_)) => Kept::No(Loss::Closed),
            Err(_) => {
                self.is_slow.store(true, Ordering::Relaxed);
                self.slow()
            }
        }
    }

    fn slow(&self) -> Kept {
        self.losses.add(Loss::Slow, 1);
        Kept::No(Loss::Slow)
    }
}
