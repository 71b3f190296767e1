//! Finds the oldest messages of a queue or of the dead letters, which leave so that others have room.

use std::sync::Arc;

use store::{Key, Store};

use super::{
    sizes::{Size, Sizes},
    stored::Queued,
};
use crate::{
    Error,
    destination::{Destination, Part},
};

/// Number of records read at once.
const READ_MAX: usize = 128;

/// Counts, and finds what has to leave.
pub(super) struct Room {
    pub(super) store: Arc<dyn Store>,
    pub(super) sizes: Sizes,
}

/// Messages that have to leave.
pub(super) struct Excess {
    pub(super) messages: Vec<Queued>,
    /// True if there are more than were asked for.
    pub(super) has_more: bool,
}

impl Room {
    /// Returns the messages that have to leave so that `added` fits, at most `max`.
    pub(super) async fn excess(
        &self,
        (destination, part): (&Destination, Part),
        added: Size,
        limit: Size,
        max: usize,
    ) -> Result<Excess, Error> {
        let mut excess = Excess { messages: Vec::new(), has_more: false };
        let at_most = self.sizes.at_most(destination, part);
        if at_most.is_some_and(|size| (size + added).fits(limit)) {
            return Ok(excess);
        }
        let mut rest = self.size(destination, part).await? + added;
        let (prefix, mut after) = (destination.prefix(part)?, None);
        while !rest.fits(limit) {
            let oldest = self.read(part, &prefix, after.as_ref()).await?;
            let Some(last) = oldest.last() else { return Ok(excess) };
            after = Some(last.key.clone());
            for queued in oldest {
                if rest.fits(limit) {
                    return Ok(excess);
                }
                if excess.messages.len() >= max {
                    return Ok(Excess { has_more: true, ..excess });
                }
                rest = rest - queued.size;
                excess.messages.push(queued);
            }
        }
        Ok(excess)
    }

    /// Exactly how much there is.
    pub(super) async fn size(&self, destination: &Destination, part: Part) -> Result<Size, Error> {
        if let Some(size) = self.sizes.exactly(destination, part) {
            return Ok(size);
        }
        self.sizes.begin_count(destination, part);
        let (prefix, mut after, mut size) = (destination.prefix(part)?, None, Size::default());
        loop {
            let read = self.read(part, &prefix, after.as_ref()).await?;
            size = read.iter().fold(size, |size, queued| size + queued.size);
            after = read.last().map(|last| last.key.clone());
            if read.len() < READ_MAX {
                break;
            }
        }
        self.sizes.counted(destination, part, size);
        Ok(size)
    }

    /// The oldest messages, or those after a key.
    async fn read(&self, part: Part, prefix: &Key, after: Option<&Key>) -> Result<Vec<Queued>, Error> {
        let entries = self.store.list(prefix, after, READ_MAX).await?;
        Ok(entries.iter().map(|entry| Queued::look_at(part, entry)).collect())
    }
}
