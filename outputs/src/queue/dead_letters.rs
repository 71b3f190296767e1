//! Operations of application owners on messages that were given up.

use store::{Batch, Commit, Entry, Key};

use super::{Addition, Delivery, Queues, Size, stored::Queued};
use crate::{
    Error,
    destination::{Destination, Part, last_level},
    message::DeadLetter,
};

/// Number of dead letters read at once.
const READ_MAX: usize = 64;
const ATTEMPTS_MAX: usize = 8;

impl Queues {
    /// The dead letters of a destination, the oldest first, and how many there are.
    pub(crate) async fn dead_letters(
        &self,
        destination: &Destination,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<DeadLetter>, usize), Error> {
        let page = self.store.page(&destination.prefix(Part::DeadLetters)?, offset, limit).await?;
        let mut letters = Vec::with_capacity(page.entries.len());
        for entry in &page.entries {
            letters.extend(self.letter(destination, entry).await?);
        }
        Ok((letters, page.total))
    }

    /// A dead letter that was found; none if it was removed meanwhile.
    pub(crate) async fn dead_letter(
        &self,
        destination: &Destination,
        found: &Queued,
    ) -> Result<Option<DeadLetter>, Error> {
        match self.store.get_one(&found.key).await? {
            Some(entry) => self.letter(destination, &entry).await,
            None => Ok(None),
        }
    }

    /// A dead letter with its body; none if it was removed meanwhile.
    async fn letter(&self, destination: &Destination, entry: &Entry) -> Result<Option<DeadLetter>, Error> {
        let (queued, letter) = Queued::letter(entry)?;
        let message = self.message(destination, &queued).await?;
        let id = queued.id().to_owned();
        let (failed_at, attempts, reason) = (letter.failed_at, letter.attempts, letter.reason);
        Ok(message.map(|message| DeadLetter { id, message, failed_at, attempts, reason }))
    }

    /// Puts dead letters at the end of the queue again, in which there is so much room: those with these ids, or all.
    /// Those that come in meanwhile are left. Returns how many there were.
    pub(crate) async fn resend(
        &self,
        destination: &Destination,
        ids: Option<&[String]>,
        limit: Size,
    ) -> Result<usize, Error> {
        let Some(last) = self.last_id(destination, Part::DeadLetters).await? else { return Ok(0) };
        // Those that are given up again have greater ids.
        self.ids.follow(&last);
        let last = destination.message(Part::DeadLetters, &last)?;
        let prefix = destination.prefix(Part::DeadLetters)?;
        let (mut after, mut sent) = (None, 0);
        loop {
            let entries = self.store.list(&prefix, after.as_ref(), READ_MAX).await?;
            let old: Vec<_> = entries.into_iter().take_while(|entry| entry.key <= last).collect();
            let Some(newest) = old.last() else { return Ok(sent) };
            after = Some(newest.key.clone());
            let is_meant = |key: &Key| ids.is_none_or(|ids| ids.iter().any(|id| *id == last_level(key)));
            for entry in old.iter().filter(|entry| is_meant(&entry.key)) {
                sent += usize::from(self.resend_one(destination, entry, limit).await?);
            }
        }
    }

    /// Returns false if somebody else sent or deleted it meanwhile.
    async fn resend_one(&self, destination: &Destination, entry: &Entry, limit: Size) -> Result<bool, Error> {
        let (queued, _) = Queued::letter(entry)?;
        let resent = store::retry(ATTEMPTS_MAX, async || {
            let current = self.store.get_one(&entry.key).await?;
            if current.is_none_or(|current| current.version != entry.version) {
                return Ok::<_, Error>(Some(false));
            }
            let Some(message) = self.message(destination, &queued).await? else { return Ok(Some(false)) };
            let batch = self.bodies.remove(Batch::new(), &destination.app_id, &[&queued]).await?;
            let delivery = Delivery { message: &message, to: vec![destination] };
            let Addition { batch, growths, is_whole } = self.append(batch, &[delivery], limit).await?;
            let is_done = self.store.commit(batch).await? == Commit::Done;
            self.appended(&growths, is_done);
            Ok((is_done && is_whole).then_some(true))
        });
        self.room.sizes.removed(destination, Part::DeadLetters);
        resent.await?.ok_or(Error::Conflict)
    }
}
