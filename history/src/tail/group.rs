//! The group of records that is written next, and who waits for it. It is written once somebody waits, so that what is
//! recorded together needs one write and one sync; without anybody who waits, soon.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;
use types::Clock;

use crate::{
    Loss, NewRecord, RECORD_BYTES_MAX, RecordId,
    record::View,
    record::loss::{Losses, set_kept},
    record::moment,
    tail::{codec, numbers::Numbers},
};

/// Size of the records of a block, in bytes, from which the next one is begun.
const BLOCK_BYTES: usize = 256 << 10;
/// Time that records wait for more if nobody waits for them. A sync takes as long as some downlinks.
const UNAWAITED_MAX: Duration = Duration::from_millis(50);

/// Takes records, and hands them to the thread that writes.
pub(crate) struct Queue {
    clock: Arc<dyn Clock>,
    bytes_max: usize,
    /// Maximum time that a record waits to be written.
    wait: Duration,
    pub(crate) losses: Arc<Losses>,
    state: Mutex<GroupState>,
    changed: Condvar,
    /// True if a record has waited for too long, and none has been written since.
    is_slow: AtomicBool,
}

/// Progress of a group: those who wait for it share it with the thread that writes.
#[derive(Default)]
struct Progress {
    /// True once somebody waits for the group, or it has waited for long enough.
    is_due: AtomicBool,
    /// True once nobody waits for a record of the group.
    is_unawaited: AtomicBool,
    /// Result of writing the group; none before that.
    result: watch::Sender<Option<Result<(), Loss>>>,
}

struct GroupState {
    numbers: Numbers,
    next: Group,
    /// The bytes of the group that is being written.
    writing: usize,
    /// Room for the records of a block, from one that was written.
    spare: Vec<u8>,
    is_closed: bool,
}

/// Records that are written with one sync.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) blocks: Vec<RawBlock>,
    pub(crate) records: u64,
    bytes: usize,
    progress: Arc<Progress>,
}

/// The records of a block, as `codec` has them.
pub(crate) struct RawBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u32,
}

/// A record on its way to the disk.
pub(crate) struct Pending {
    id: RecordId,
    progress: Arc<Progress>,
    queue: Arc<Queue>,
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
        let state = GroupState {
            numbers: Numbers::new(writer),
            next: Group::default(),
            writing: 0,
            spare: Vec::new(),
            is_closed: false,
        };
        Self {
            clock,
            bytes_max,
            wait,
            losses: Arc::new(Losses::new()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_slow: AtomicBool::new(false),
        }
    }

    /// Adds a record to the group that is written next.
    pub(crate) fn push(self: &Arc<Self>, new: &NewRecord<'_>) -> Result<Pending, Loss> {
        let bytes = codec::bytes_max(new);
        if bytes > RECORD_BYTES_MAX {
            return Err(Loss::TooLarge);
        }
        let now = moment::millis(self.clock.now());
        let mut state = self.state.lock();
        let waiting = state.next.bytes + state.writing;
        // One record may always wait, whatever the bound.
        if state.is_closed || (waiting > 0 && waiting + bytes > self.bytes_max) {
            let refused = if state.is_closed { Loss::Closed } else { Loss::Queue };
            let progress = (state.next.records > 0).then(|| Arc::clone(&state.next.progress));
            drop(state);
            // There is room once they are written.
            progress.inspect(|progress| self.write_now(progress));
            return Err(refused);
        }
        let id = state.numbers.next(now);
        let GroupState { next, spare, .. } = &mut *state;
        next.push(&View::of_new(id, new), spare);
        let (progress, is_large) = (Arc::clone(&state.next.progress), state.next.bytes >= BLOCK_BYTES);
        drop(state);
        if is_large {
            self.write_now(&progress);
        }
        Ok(Pending { id, progress, queue: Arc::clone(self) })
    }

    /// Has the group with this progress written, if it is not written yet. It must have a record.
    fn write_now(&self, progress: &Progress) {
        self.set(&progress.is_due);
    }

    /// The same, but others may join it for a while.
    fn write_soon(&self, progress: &Progress) {
        if !progress.is_due.load(Ordering::Acquire) {
            self.set(&progress.is_unawaited);
        }
    }

    fn set(&self, flag: &AtomicBool) {
        if !flag.swap(true, Ordering::AcqRel) {
            // With the lock, the thread that writes either sees it or waits already.
            drop(self.state.lock());
            self.changed.notify_one();
        }
    }

    /// Waits for a group that is due. None once the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<Group> {
        let mut state = self.state.lock();
        while state.next.records == 0 || !(state.is_closed || state.next.progress.is_due.load(Ordering::Acquire)) {
            if state.is_closed {
                return None;
            }
            self.wait_for_change(&mut state);
        }
        let group = mem::take(&mut state.next);
        state.writing = group.bytes;
        Some(group)
    }

    /// Waits until a record or a flag may have changed. Records for which nobody waits are due if nothing does.
    fn wait_for_change(&self, state: &mut MutexGuard<'_, GroupState>) {
        if !state.next.progress.is_unawaited.load(Ordering::Acquire) {
            self.changed.wait(state);
        } else if self.changed.wait_for(state, UNAWAITED_MAX).timed_out() {
            state.next.progress.is_due.store(true, Ordering::Release);
        }
    }

    /// Tells the futures that wait for a group the result of writing it.
    pub(crate) fn done(&self, mut group: Group, result: Result<(), Loss>) {
        self.reuse(group.blocks.pop());
        if let Err(loss) = result {
            self.losses.add(loss, group.records);
        }
        if self.is_slow.swap(false, Ordering::Relaxed) && result.is_ok() {
            set_kept(true);
            tracing::info!("messages wait for history again");
        }
        group.progress.result.send_replace(Some(result));
    }

    /// Keeps the room of a block that was written for one that comes.
    fn reuse(&self, block: Option<RawBlock>) {
        let mut state = self.state.lock();
        state.writing = 0;
        if let Some(RawBlock { mut bytes, .. }) = block.filter(|block| block.bytes.capacity() <= 2 * BLOCK_BYTES) {
            bytes.clear();
            state.spare = bytes;
        }
    }

    /// Takes no more records.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl Pending {
    /// Waits until the record is on disk, but not for long.
    pub(crate) async fn wait(self) -> Result<RecordId, Loss> {
        let known = *self.progress.result.borrow();
        if let Some(result) = known {
            return self.kept(result);
        }
        self.queue.write_now(&self.progress);
        // Once the disk is known to be slow, messages pass without each waiting for it.
        if self.queue.is_slow.load(Ordering::Relaxed) {
            return self.slow();
        }
        let mut result = self.progress.result.subscribe();
        let result = tokio::time::timeout(self.queue.wait, result.wait_for(Option::is_some)).await;
        match result.map(|result| result.map(|result| *result)) {
            Ok(Ok(Some(result))) => self.kept(result),
            Ok(Ok(None) | Err(_)) => Err(Loss::Closed),
            Err(_) => {
                if !self.queue.is_slow.swap(true, Ordering::Relaxed) {
                    set_kept(false);
                    tracing::error!("messages do not wait for history any more, because its disk is slow");
                }
                self.slow()
            }
        }
    }

    fn kept(&self, result: Result<(), Loss>) -> Result<RecordId, Loss> {
        result.map(|()| self.id)
    }

    fn slow(&self) -> Result<RecordId, Loss> {
        self.queue.losses.add(Loss::Slow, 1);
        Err(Loss::Slow)
    }
}

impl Drop for Pending {
    /// Writes what nobody waits for all the same.
    fn drop(&mut self) {
        self.queue.write_soon(&self.progress);
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, sync::mpsc, thread};

    use testing::{Log, ManualClock};

    use super::*;
    use crate::Kind;

    fn push(queue: &Arc<Queue>) -> Result<Pending, Loss> {
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "my-device".parse().unwrap());
        queue.push(&NewRecord::new(&app_id, &dev_id, &Kind::Uplink, types::Timestamp::default()))
    }

    fn queue(bytes_max: usize) -> Arc<Queue> {
        Arc::new(Queue::new(ManualClock::new(), 7, bytes_max, Duration::from_secs(1)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_disk_holds_up_one_message_and_not_those_that_follow() {
        let (log, _logging) = Log::start(tracing::Level::INFO);
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
        queue.write_now(&pending.progress);
        queue.done(queue.take().unwrap(), Ok(()));
        assert!(pending.wait().await.is_ok());
        assert_eq!(queue.losses.count(Loss::Slow), 2);
        for line in ["messages do not wait for history any more", "messages wait for history again"] {
            assert_eq!(log.text().matches(line).count(), 1, "{}", log.text());
        }
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

    #[test]
    fn records_are_written_together_once_one_is_waited_for_or_dropped() {
        let queue = queue(1 << 20);
        let (send, written) = mpsc::channel();
        let writing = thread::spawn({
            let queue = Arc::clone(&queue);
            move || iter::from_fn(|| queue.take()).try_for_each(|group| send.send(group.records))
        });
        let pending: Vec<_> = (0..5).map(|_| push(&queue).ok().unwrap()).collect();
        assert_eq!(written.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(pending);
        assert_eq!(written.recv(), Ok(5));
        // Nobody waits for this one, and it is written when the queue is closed.
        mem::forget(push(&queue));
        queue.close();
        assert_eq!(written.recv(), Ok(1));
        writing.join().unwrap().unwrap();
    }

    #[test]
    fn records_for_which_nobody_waits_are_written_soon_with_those_that_follow() {
        let queue = queue(1 << 20);
        let first = push(&queue).ok().unwrap();
        let progress = Arc::clone(&first.progress);
        drop(first);
        assert!(!progress.is_due.load(Ordering::Acquire), "it waits for others");
        drop(push(&queue).ok().unwrap());
        assert_eq!(queue.take().unwrap().records, 2);
        assert!(progress.is_due.load(Ordering::Acquire));
    }

    #[tokio::test]
    async fn a_queue_that_was_full_goes_on() {
        let queue = queue(1);
        let (send, taken) = mpsc::channel();
        let writing = thread::spawn({
            let queue = Arc::clone(&queue);
            move || iter::from_fn(|| queue.take()).try_for_each(|group| send.send(group))
        });
        let first = push(&queue).ok().unwrap();
        first.queue.write_now(&first.progress);
        let group = taken.recv().unwrap();
        // The group that is written fills the queue, and the next one is empty.
        assert_eq!(push(&queue).err(), Some(Loss::Queue));
        queue.done(group, Ok(()));
        let second = push(&queue).ok().unwrap();
        drop(second);
        assert_eq!(taken.recv().unwrap().records, 1);
        queue.close();
        writing.join().unwrap().unwrap();
    }
}
