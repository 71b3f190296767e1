//! Looks for one message in the queue of a destination, and among its dead letters.

use server::usage::Usage;
use types::{DevId, Timestamp};

use super::{Queues, ids, stored::Queued};
use crate::{
    Error,
    destination::{Destination, Part},
    message::OutputMessage,
};

/// Number of records read at once.
const READ_MAX: usize = 64;
/// Maximum number of records that a search looks at in each part.
const LOOKED_MAX: usize = 512;
/// The same in bytes, of those whose bodies it reads.
const READ_BYTES_MAX: usize = 1 << 20;

/// A message, as it can be told from others.
pub struct MessageQuery<'a> {
    /// The device that it is about.
    pub dev_id: &'a DevId,
    /// The event that it reports.
    pub event: &'a str,
    /// A moment at which it was not stored yet, shortly before it was.
    pub before: Timestamp,
    /// Tells it from others that were delivered; 0 if nothing does.
    pub identity: u64,
    /// The latest moment at which it was accepted, if others with the same identity may have come later.
    pub accepted_until: Option<Timestamp>,
    /// Returns true for it, among those about the same device and event.
    pub is_it: &'a (dyn Fn(&OutputMessage) -> bool + Sync),
    /// Pays for the records that are read.
    pub usage: &'a Usage,
}

/// Result of a search.
pub(crate) enum Search {
    Found(Box<Queued>),
    /// It is not there, if all that can be it was looked at.
    Missing {
        is_certain: bool,
    },
}

impl Queues {
    /// Looks for a message from that moment on.
    pub(crate) async fn find(
        &self,
        destination: &Destination,
        part: Part,
        sought: &MessageQuery<'_>,
    ) -> Result<Search, Error> {
        let prefix = destination.prefix(part)?;
        let mut after = destination.message(part, &ids::begin(sought.before))?;
        let (mut looked, mut read_bytes) = (0, 0);
        loop {
            let entries = self.store.list(&prefix, Some(&after), READ_MAX).await?;
            sought.usage.add_entries(entries.len());
            for entry in &entries {
                let queued = Queued::look_at(part, entry);
                if queued.message.dev_id.as_ref() != Some(sought.dev_id) || queued.message.event != sought.event {
                    continue;
                }
                if read_bytes >= READ_BYTES_MAX {
                    return Ok(Search::Missing { is_certain: false });
                }
                read_bytes += queued.size.bytes;
                let message = self.message(destination, &queued).await?;
                if message.is_some_and(|message| (sought.is_it)(&message)) {
                    return Ok(Search::Found(Box::new(queued)));
                }
            }
            looked += entries.len();
            match entries.into_iter().next_back() {
                Some(last) if looked < LOOKED_MAX => after = last.key,
                Some(_) => return Ok(Search::Missing { is_certain: false }),
                None => return Ok(Search::Missing { is_certain: true }),
            }
        }
    }
}
