//! Messages that are sent again: they go into queues that are nearly empty, so that no live message leaves for them.

use store::{Batch, Commit};
use types::{AppId, WebhookId};

use super::{ATTEMPTS_MAX, Appender, COMMIT_RECORDS_MAX};
use crate::{
    Error,
    destination::{Destination, Part, WEBHOOK},
    destinations::OfApplication,
    message::{MESSAGE_BYTES_MAX, OutputMessage},
    queue::{Addition, Delivery, Size},
};

/// Selects receivers of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers<'a> {
    /// All of them.
    All,
    /// The webhook with this id.
    Webhook(&'a WebhookId),
    /// The outputs of the operator with this name, of whatever kind.
    Operator(&'a str),
}

/// Room that receivers have for messages behind the live ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpareRoom {
    /// Number of receivers that have room.
    pub receivers: usize,
    /// Number of messages that each of those can take.
    pub messages: usize,
    /// Bytes of messages that each of those can take.
    pub bytes: usize,
    /// The receivers that have no room now, such as `webhook my-hook`.
    pub full: Vec<String>,
}

/// Those that got a message, and those that could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// Number of receivers that got it.
    pub taken: usize,
    /// The receivers that had no room, such as `webhook my-hook`.
    pub full: Vec<String>,
    /// The receivers that would have got it if it were not larger than [`MESSAGE_BYTES_MAX`].
    pub too_large: Vec<String>,
}

impl Receivers<'_> {
    pub(crate) fn include(self, destination: &Destination) -> bool {
        match self {
            Self::All => true,
            Self::Webhook(id) => destination.kind == WEBHOOK && destination.name == id.as_str(),
            Self::Operator(name) => destination.kind != WEBHOOK && destination.name == name,
        }
    }
}

impl Appender {
    pub(crate) async fn spare(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<SpareRoom, Error> {
        let (destinations, mut spare) = (self.destinations.of(app_id).await?, SpareRoom::default());
        let limit = self.queues.limit(Part::Queue, destinations.len());
        let is_wanted = |it: &&Destination| messages.iter().any(|message| destinations.wanting(message).contains(it));
        for destination in destinations.iter().filter(|it| to.include(it)).filter(is_wanted) {
            spare.add(destination, self.queues.spare(destination, limit).await?);
        }
        Ok(spare)
    }

    pub(crate) async fn publish_behind(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<Vec<Recipients>, Error> {
        let (mut all, destinations) = (Vec::new(), self.destinations.of(app_id).await?.len());
        for messages in messages.chunks((COMMIT_RECORDS_MAX / (destinations + 1)).max(1)) {
            let stored = store::retry(ATTEMPTS_MAX, || self.try_store_behind(app_id, messages, to)).await;
            all.extend(match stored {
                // The owner of the application may not store more.
                Err(error) if error.is_full() => self.refuse(app_id, messages, to).await?,
                stored => stored?.ok_or(Error::Conflict)?,
            });
        }
        Ok(all)
    }

    async fn try_store_behind(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<Option<Vec<Recipients>>, Error> {
        let destinations = self.destinations.of(app_id).await?;
        let limit = self.queues.limit(Part::Queue, destinations.len());
        let mut spares = Vec::new();
        for destination in destinations.iter().filter(|it| to.include(it)) {
            spares.push((destination, self.queues.spare(destination, limit).await?));
        }
        let (deliveries, recipients) = share_out(&destinations, &mut spares, messages);
        if deliveries.is_empty() {
            return Ok(Some(recipients));
        }
        self.put_index(app_id).await?;
        let batch = destinations.expect(Batch::new());
        let Addition { batch, growths, is_whole } = self.queues.append(batch, &deliveries, limit).await?;
        let committed = self.store.commit(batch).await;
        self.queues.appended(&growths, matches!(committed, Ok(Commit::Done)));
        if committed? == Commit::Conflict {
            self.destinations.forget(app_id);
            return Ok(None);
        }
        self.report(&growths);
        Ok(is_whole.then_some(recipients))
    }

    async fn refuse(
        &self,
        app_id: &AppId,
        messages: &[OutputMessage],
        to: Receivers<'_>,
    ) -> Result<Vec<Recipients>, Error> {
        let destinations = self.destinations.of(app_id).await?;
        let recipients = messages.iter().map(|message| {
            let wanting = destinations.wanting(message).into_iter().filter(|it| to.include(it));
            Recipients { full: wanting.map(name).collect(), ..Recipients::default() }
        });
        Ok(recipients.collect())
    }
}

/// Gives each message to those that want it, as long as there is room.
fn share_out<'a>(
    destinations: &OfApplication,
    spares: &mut [(&'a Destination, Size)],
    messages: &'a [OutputMessage],
) -> (Vec<Delivery<'a>>, Vec<Recipients>) {
    let (mut deliveries, mut all) = (Vec::new(), Vec::new());
    for message in messages {
        let (mut recipients, mut to, wanting) = (Recipients::default(), Vec::new(), destinations.wanting(message));
        let bytes = message.body.get().len();
        for (destination, spare) in spares.iter_mut().filter(|(destination, _)| wanting.contains(destination)) {
            if bytes > MESSAGE_BYTES_MAX {
                recipients.too_large.push(name(destination));
            } else if spare.messages == 0 || spare.bytes == 0 {
                recipients.full.push(name(destination));
            } else {
                *spare = *spare - Size { messages: 1, bytes };
                to.push(*destination);
            }
        }
        recipients.taken = to.len();
        all.push(recipients);
        if !to.is_empty() {
            deliveries.push(Delivery { message, to });
        }
    }
    (deliveries, all)
}

/// Returns the name of a destination in reports.
fn name(Destination { kind, name, .. }: &Destination) -> String {
    format!("{kind} {name}")
}

impl SpareRoom {
    fn add(&mut self, destination: &Destination, Size { messages, bytes }: Size) {
        if messages == 0 {
            return self.full.push(name(destination));
        }
        let is_first = self.receivers == 0;
        self.messages = if is_first { messages } else { self.messages.min(messages) };
        self.bytes = if is_first { bytes } else { self.bytes.min(bytes) };
        self.receivers += 1;
    }
}
