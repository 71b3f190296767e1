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
    Loss, NewRecord, RECORD_BYTES_MAX, RecordId,
    record::View,
    record::loss::Losses,
    record::moment,
    tail::{codec, numbers::Numbers},
};

/// Size of the records of a block, in bytes, from which the next one is begun.
const BLOCK_BYTES: usize = 256 << 10;

/// Takes records, and hands them to the thread that writes.
pub(crate) struct Queue {
    clock: Arc<dyn Clock>,
    bytes_max: usize,
    pub(crate) losses: Arc<Losses>,
    state: Mutex<State>,
    changed: Condvar,
    waiting: Arc<Waiting>,
}

/// State shared by the futures that wait.
struct Waiting {
    wait: Duration,
    /// True if a record has waited for too long, and none has been written since.
    is_slow: AtomicBool,
    losses: Arc<Losses>,
}

/// Result of writing a group; none while it waits.
type Done = watch::Sender<Option<Result<(), Loss>>>;

struct State {
    numbers: Numbers,
    next: Group,
    /// The bytes of the group that is being written.
    writing: usize,
    /// Room for the records of a block, from one that was written.
    spare: Vec<u8>,
    is_closed: bool,
}

/// Records that are written with one sync.
pub(crate) struct Group {
    pub(crate) blocks: Vec<RawBlock>,
    pub(crate) records: u64,
    bytes: usize,
    done: Arc<Done>,
}

/// The records of a block, as `codec` has them.
pub(crate) struct RawBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u32,
}

/// A record on its way to the disk.
pub(crate) struct Pending {
    id: RecordId,
    done: Arc<Done>,
    waiting: Arc<Waiting>,
}

impl Default for Group {
    fn default() -> Self {
        Self { blocks: Vec::new(), records: 0, bytes: 0, done: Arc::new(watch::Sender::new(None)) }
    }
}

impl Group {
    fn push(&mut self, view: &View<'_>, spare: &mut Vec<u8>) {
        if self.blocks.last().is_none_or(|block| block.bytes.len() >= BLOCK_BYTES) {
            self.blocks.push(RawBlock { bytes: mem::take(spare), records: 0 });
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
        let state = State {
            numbers: Numbers::new(writer),
            next: Group::default(),
            writing: 0,
            spare: Vec::new(),
            is_closed: false,
        };
        let losses = Arc::new(Losses::new());
        Self {
            clock,
            bytes_max,
            losses: Arc::clone(&losses),
            state: Mutex::new(state),
            changed: Condvar::new(),
            waiting: Arc::new(Waiting { wait, is_slow: AtomicBool::new(false), losses }),
        }
    }

    /// Adds a record to the group that is written next.
    pub(crate) fn push(&self, new: &NewRecord<'_>) -> Result<Pending, Loss> {
        let bytes = codec::bytes_max(new);
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
        let State { next, spare, .. } = &mut *state;
        next.push(&View::of_new(id, new), spare);
        let done = Arc::clone(&state.next.done);
        let is_first = state.next.records == 1;
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
        Ok(Pending { id, done, waiting: Arc::clone(&self.waiting) })
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

    /// Tells the futures that wait for a group the result of writing it.
    pub(crate) fn done(&self, mut group: Group, result: Result<(), Loss>) {
        self.reuse(group.blocks.pop());
        if let Err(loss) = result {
            self.losses.add(loss, group.records);
        }
        self.waiting.is_slow.store(false, Ordering::Relaxed);
        group.done.send_replace(Some(result));
    }

    /// Keeps the room of a block that was written for one that comes.
    fn reuse(&self, block: Option<RawBlock>) {
        let mut state = self.state();
        state.writing = 0;
        if let Some(RawBlock { mut bytes, .. }) = block.filter(|block| block.bytes.capacity() <= 2 * BLOCK_BYTES) {
            bytes.clear();
            state.spare = bytes;
        }
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
    pub(crate) async fn wait(self) -> Result<RecordId, Loss> {
        let known = *self.done.borrow();
        if let Some(result) = known {
            return self.kept(result);
        }
        // Once the disk is known to be slow, messages pass without each waiting for it.
        if self.waiting.is_slow.load(Ordering::Relaxed) {
            return self.slow();
        }
        let mut done = self.done.subscribe();
        let done = tokio::time::timeout(self.waiting.wait, done.wait_for(Option::is_some)).await;
        match done.map(|done| done.map(|done| *done)) {
            Ok(Ok(Some(result))) => self.kept(result),
            Ok(Ok(None) | Err(_)) => Err(Loss::Closed),
            Err(_) => {
                self.waiting.is_slow.store(true, Ordering::Relaxed);
                self.slow()
            }
        }
    }

    fn kept(&self, result: Result<(), Loss>) -> Result<RecordId, Loss> {
        result.map(|()| self.id)
    }

    fn slow(&self) -> Result<RecordId, Loss> {
        self.waiting.losses.add(Loss::Slow, 1);
        Err(Loss::Slow)
    }
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;

    use super::*;
    use crate::Kind;

    fn push(queue: &Queue) -> Result<Pending, Loss> {
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "my-device".parse().unwrap());
        queue.push(&NewRecord::new(&app_id, &dev_id, &Kind::Uplink, types::Timestamp::default()))
    }

    fn queue(bytes_max: usize) -> Queue {
        Queue::new(ManualClock::new(), 7, bytes_max, Duration::from_secs(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_disk_holds_up_one_message_and_not_those_that_follow() {
        let queue = queue(1 << 20);
        let pending = push(&queue).ok().unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(pending.wait().await, Err(Loss::Slow));
        assert_eq!(start.elapsed().as_secs(), 1);
        assert_eq!(push(&queue).ok().unwrap().wait().await, Err(Loss::Slow));
        assert_eq!(start.elapsed().as_secs(), 1);
        // They are written when the disk recovers, and later ones wait again.
        let group = queue.take().unwrap();
        assert_eq!(group.records, 2);
        queue.done(group, Ok(()));
        let pending = push(&queue).ok().unwrap();
        queue.done(queue.take().unwrap(), Ok(()));
        assert!(pending.wait().await.is_ok());
        assert_eq!(queue.losses.count(Loss::Slow), 2);
    }

    #[tokio::test]
    async fn a_full_queue_takes_one_record_and_no_more() {
        let queue = queue(1);
        let first = push(&queue).ok().unwrap();
        assert_eq!(push(&queue).err(), Some(Loss::Queue));
        let group = queue.take().unwrap();
        assert_eq!(push(&queue).err(), Some(Loss::Queue));
        queue.done(group, Err(Loss::Failed));
        assert_eq!(first.wait().await, Err(Loss::Failed));
        assert!(push(&queue).is_ok());
    }
}
