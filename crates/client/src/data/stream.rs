//! Messages as a stream.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::Stream;
use tokio::sync::mpsc;

use super::{
    actor::Command,
    connect::SERVICE,
    queue::{Queue, Received, Shared, queue},
};
use crate::{Error, Result};

/// Messages as they arrive, until the client is closed.
///
/// An error says that messages were dropped, after which the stream goes on, or that the broker has refused the
/// credential, after which it ends.
#[derive(Debug)]
pub struct MessageStream {
    address: String,
    messages: mpsc::Receiver<Received>,
    shared: Arc<Shared>,
    missed: u64,
    commands: mpsc::Sender<Command>,
}

impl MessageStream {
    pub(super) fn new(address: &str, commands: mpsc::Sender<Command>) -> (Self, Queue) {
        let (queue, messages, shared) = queue();
        (Self { address: address.to_owned(), messages, shared, missed: 0, commands }, queue)
    }

    /// Waits for the next message; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Received>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Takes the error that ended the stream. Later calls return `None`.
    fn refusal(&self) -> Option<Error> {
        let (kind, message) = self.shared.refusal()?;
        Some(Error::Refused { kind, message, retry_after: None })
    }
}

impl Stream for MessageStream {
    type Item = Result<Received>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Received>>> {
        self.shared.wakes(context.waker());
        let missed = self.shared.missed();
        if missed > self.missed {
            let count = missed - self.missed;
            self.missed = missed;
            let address = self.address.clone();
            return Poll::Ready(Some(Err(Error::Missed { service: SERVICE, address, count })));
        }
        match self.messages.poll_recv(context) {
            Poll::Ready(Some(received)) => Poll::Ready(Some(Ok(received))),
            Poll::Ready(None) => Poll::Ready(self.refusal().map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        self.messages.close();
        // If there is no room, the client notices when the next message arrives.
        _ = self.commands.try_send(Command::Update);
    }
}
