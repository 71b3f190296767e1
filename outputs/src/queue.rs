//! The queues of destinations in the store: in order, bounded in messages and bytes, and beside them the dead letters.

pub(crate) mod aging;
mod bodies;
mod dead_letters;
mod deletion;
mod dropped;
mod ids;
pub(crate) mod index;
mod room;
pub(crate) mod search;
mod settling;
mod sizes;
pub(crate) mod stored;

use std::sync::Arc;

use store::{Batch, Commit, Key, Store};
use types::Clock;

use self::{bodies::Bodies, dropped::DroppedCounts, ids::Ids, room::Room, sizes::Sizes};
pub(crate) use self::{
    sizes::Size,
    stored::{Queued, StoredMessage},
};
use crate::{
    Error, Settings,
    destination::{self, Destination, Part, last_level},
    message::{MESSAGE_BYTES_MAX, OutputMessage},
};

/// Maximum number of messages that one commit drops.
const DROP_MAX: usize = 128;
/// Maximum number of attempts of a commit while others change the same queue.
const ATTEMPTS_MAX: usize = 8;
/// Bytes that every queue has room for, however many destinations an application has: those of one commit.
const QUEUE_BYTES_MIN: usize = 2 * MESSAGE_BYTES_MAX;

/// The queues of all destinations.
pub(crate) struct Queues {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    /// True if other processes add messages to the same queues.
    is_shared: bool,
    ids: Ids,
    room: Room,
    bodies: Bodies,
    dropped: DroppedCounts,
}

/// A message, and who gets it.
pub(crate) struct Delivery<'a> {
    pub(crate) message: &'a OutputMessage,
    pub(crate) to: Vec<&'a Destination>,
}

/// Messages that a batch adds, once it is committed.
pub(crate) struct Addition {
    pub(crate) batch: Batch,
    pub(crate) growths: Vec<Growth>,
    /// True if the batch contains the messages. If not, it only makes room for them: there is more to drop than one
    /// commit can.
    pub(crate) is_whole: bool,
}

/// Change of the queue of a destination by a batch, once it is committed.
pub(crate) struct Growth {
    pub(crate) destination: Destination,
    added: Size,
    dropped: Vec<Queued>,
}

/// Results of sending messages.
#[derive(Default)]
pub(crate) struct Settled {
    pub(crate) delivered: Vec<Queued>,
    pub(crate) dead: Vec<(Queued, Failure)>,
    /// Those whose bodies are missing.
    pub(crate) lost: Vec<Queued>,
}

/// Attempts and last error of a message that was given up.
pub(crate) struct Failure {
    pub(crate) attempts: u32,
    pub(crate) reason: String,
}

impl Growth {
    /// Returns the number of messages that the batch drops.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.len()
    }

    fn dropped_size(&self) -> Size {
        self.dropped.iter().fold(Size::default(), |size, queued| size + queued.size)
    }
}

impl Settled {
    pub(crate) fn is_empty(&self) -> bool {
        self.delivered.is_empty() && self.dead.is_empty() && self.lost.is_empty()
    }

    fn leaving(&self) -> impl Iterator<Item = &Queued> {
        self.delivered.iter().chain(&self.lost)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.leaving().chain(self.dead.iter().map(|(queued, _)| queued)).map(|queued| &queued.key)
    }
}

impl Queues {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        settings: &Settings,
        is_shared: bool,
        process: u64,
    ) -> Self {
        Self {
            clock,
            settings: settings.clone(),
            is_shared,
            ids: Ids::new(process),
            room: Room { store: store.clone(), sizes: Sizes::new(is_shared) },
            bodies: Bodies { store: store.clone() },
            dropped: DroppedCounts { store: store.clone() },
            store,
        }
    }

    /// A name for a message, greater than those that this process used before.
    pub(crate) fn next_id(&self) -> String {
        self.ids.next(self.now_ms())
    }

    /// Returns the limit of a part of a destination if the application has so many destinations.
    pub(crate) fn limit(&self, part: Part, destinations: usize) -> Size {
        let messages = match part {
            Part::Queue => self.settings.queue_messages_max.max(1),
            Part::DeadLetters => self.settings.dead_letters_max,
        };
        let share = self.settings.application_bytes_max / (Part::ALL.len() * destinations.max(1));
        Size { messages, bytes: self.settings.queue_bytes_max.min(share).max(QUEUE_BYTES_MIN) }
    }

    /// Returns the room in a queue behind live messages: none once a tenth of its limit is in use. Whatever the
    /// limit, an empty queue has room for a message. Fails if the store does.
    pub(crate) async fn spare(&self, destination: &Destination, limit: Size) -> Result<Size, Error> {
        let tenth = Size { messages: limit.messages / 10, bytes: limit.bytes / 10 };
        let at_most =
            self.room.sizes.at_most(destination, Part::Queue).filter(|size| !self.is_shared && size.fits(tenth));
        let size = match at_most {
            Some(size) => size,
            None => self.room.size(destination, Part::Queue).await?,
        };
        if !size.fits(tenth) {
            return Ok(Size::default());
        }
        let rest = Size { messages: tenth.messages, bytes: limit.bytes / 2 } - size;
        Ok(Size { messages: rest.messages.max(1), ..rest })
    }

    /// Adds messages of one application to the queues of their destinations; drops the oldest of those that are full.
    /// The batch fails if others change the queues so that something else would be dropped.
    pub(crate) async fn append(
        &self,
        mut batch: Batch,
        deliveries: &[Delivery<'_>],
        limit: Size,
    ) -> Result<Addition, Error> {
        let mut growths = self.growths(deliveries).await?;
        for Delivery { message, to } in deliveries {
            let Some(first) = to.first() else { continue };
            let (id, (stored, body)) = (self.next_id(), StoredMessage::new(message, to));
            if let Some(body) = body {
                batch = batch.put(destination::body(&first.app_id, &id)?, body.to_owned());
            }
            let value = serde_json::to_vec(&stored)?;
            for destination in to {
                let key = destination.message(Part::Queue, &id)?;
                let size = stored.size(&key, value.len());
                growths.iter_mut().filter(|growth| growth.destination == **destination).for_each(|growth| {
                    growth.added = growth.added + size;
                });
                batch = batch.put(key, value.clone());
            }
        }
        self.make_room(batch, growths, limit).await
    }

    /// One for each destination, in which ids follow all that wait.
    async fn growths(&self, deliveries: &[Delivery<'_>]) -> Result<Vec<Growth>, Error> {
        let mut growths: Vec<Growth> = Vec::new();
        for destination in deliveries.iter().flat_map(|delivery| &delivery.to) {
            if growths.iter().any(|growth| growth.destination == **destination) {
                continue;
            }
            if self.is_shared || self.room.sizes.at_most(destination, Part::Queue).is_none() {
                self.begin_after(destination).await?;
            }
            let destination = Destination::clone(destination);
            growths.push(Growth { destination, added: Size::default(), dropped: Vec::new() });
        }
        Ok(growths)
    }

    /// Makes the next ids follow all waiting ones: the process that stored those may have had a clock that was ahead.
    /// Messages that others add at the same moment may come before or after.
    async fn begin_after(&self, destination: &Destination) -> Result<(), Error> {
        let queue = destination.prefix(Part::Queue)?;
        for _ in 0..ATTEMPTS_MAX {
            let next = destination.message(Part::Queue, &self.next_id())?;
            if self.store.list(&queue, Some(&next), 1).await?.is_empty() {
                break;
            }
            if let Some(last) = self.last_id(destination, Part::Queue).await? {
                self.ids.follow(&last);
            }
        }
        Ok(())
    }

    /// The id of the newest message.
    async fn last_id(&self, destination: &Destination, part: Part) -> Result<Option<String>, Error> {
        let prefix = destination.prefix(part)?;
        let total = self.store.page(&prefix, 0, 1).await?.total;
        let last = self.store.page(&prefix, total.saturating_sub(1), 1).await?;
        Ok(last.entries.last().map(|entry| last_level(&entry.key).to_owned()))
    }

    async fn make_room(&self, batch: Batch, mut growths: Vec<Growth>, limit: Size) -> Result<Addition, Error> {
        let (mut is_whole, mut max) = (true, DROP_MAX);
        for growth in &mut growths {
            let queue = (&growth.destination, Part::Queue);
            let excess = self.room.excess(queue, growth.added, limit, max).await?;
            max -= excess.messages.len();
            is_whole &= !excess.has_more;
            growth.dropped = excess.messages;
        }
        let batch = if is_whole { batch.growing() } else { Batch::new() };
        if !is_whole {
            growths.iter_mut().for_each(|growth| growth.added = Size::default());
        }
        let batch = self.dropping(batch, &growths).await?;
        Ok(Addition { batch, growths, is_whole })
    }

    async fn dropping(&self, mut batch: Batch, growths: &[Growth]) -> Result<Batch, Error> {
        let dropped: Vec<&Queued> = growths.iter().flat_map(|growth| &growth.dropped).collect();
        let Some(growth) = growths.first().filter(|_| !dropped.is_empty()) else { return Ok(batch) };
        batch = self.bodies.remove(batch, &growth.destination.app_id, &dropped).await?;
        for Growth { destination, dropped, .. } in growths.iter().filter(|growth| growth.dropped() > 0) {
            batch = self.dropped.add(batch, destination, dropped.len()).await?;
        }
        Ok(batch)
    }

    /// Notes that a batch was committed, or that it was not.
    pub(crate) fn appended(&self, growths: &[Growth], is_done: bool) {
        for growth in growths {
            let (destination, sizes) = (&growth.destination, &self.room.sizes);
            match is_done {
                true => sizes.changed(destination, Part::Queue, growth.added, growth.dropped_size()),
                false => sizes.forget(destination, Part::Queue),
            }
        }
    }

    /// Drops the oldest messages of each destination, as many bytes as these messages need there, because nothing more
    /// can be stored. Returns what was dropped.
    pub(crate) async fn give_way(&self, deliveries: &[Delivery<'_>]) -> Result<Option<Vec<Growth>>, Error> {
        let (mut growths, mut max) = (self.growths(deliveries).await?, DROP_MAX);
        for growth in &mut growths {
            let to = deliveries.iter().filter(|delivery| delivery.to.contains(&&growth.destination));
            let bytes = to.map(|delivery| delivery.message.body.get().len()).sum();
            let (queue, added) = ((&growth.destination, Part::Queue), Size { messages: 0, bytes });
            let now = self.room.size(&growth.destination, Part::Queue).await?;
            growth.dropped = self.room.excess(queue, added, now, max).await?.messages;
            max -= growth.dropped.len();
        }
        self.commit_drops(growths).await
    }

    /// Drops messages that were read from the queue of a destination; none of them if others change it meanwhile.
    /// Returns how many were dropped.
    pub(crate) async fn drop_these(&self, destination: &Destination, dropped: Vec<Queued>) -> Result<usize, Error> {
        let growth = Growth { destination: destination.clone(), added: Size::default(), dropped };
        let dropped = self.commit_drops(vec![growth]).await?;
        Ok(dropped.iter().flatten().map(Growth::dropped).sum())
    }

    async fn commit_drops(&self, growths: Vec<Growth>) -> Result<Option<Vec<Growth>>, Error> {
        let batch = self.dropping(Batch::new(), &growths).await?;
        if batch.is_empty() {
            return Ok(Some(growths));
        }
        let committed = self.store.commit(batch).await;
        let is_done = matches!(committed, Ok(Commit::Done));
        self.appended(&growths, is_done);
        _ = committed?;
        Ok(is_done.then_some(growths))
    }

    /// Counts messages as dropped that could not be stored at all. Returns false if others count at the same time.
    pub(crate) async fn count_dropped(&self, deliveries: &[Delivery<'_>]) -> Result<Option<()>, Error> {
        let mut batch = Batch::new();
        for growth in self.growths(deliveries).await? {
            let destination = &growth.destination;
            let dropped = deliveries.iter().filter(|delivery| delivery.to.contains(&destination)).count();
            batch = self.dropped.add(batch, destination, dropped).await?;
        }
        Ok((self.store.commit(batch).await? == Commit::Done).then_some(()))
    }

    fn now_ms(&self) -> u64 {
        self.clock.now().as_unix_ms()
    }
}
