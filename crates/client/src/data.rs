//! An application's messages as they arrive, and downlinks to its devices, for programs.

mod actor;
mod connect;
mod connection_event;
mod downlink;
mod downlinks;
mod link;
mod message;
mod queue;
mod stream;
mod subscriptions;
mod topics;

use std::time::Duration;

use tokio::{
    sync::{broadcast, mpsc, oneshot},
    task::AbortHandle,
    time::timeout,
};
use types::{AppId, Credential, DevId};

use self::{
    actor::{Actor, Command},
    connect::{SERVICE, connection_error, endpoint},
    downlinks::PendingDownlink,
    link::Link,
};
pub use self::{
    connection_event::ConnectionEvent,
    downlink::{Payload, Schedule},
    message::{DeviceEventName, Message},
    queue::{QUEUE_MAX, Received},
    stream::MessageStream,
    topics::Topics,
};
use crate::{Error, Result, Trust};

/// Maximum time to wait for the broker's response to a subscription or a downlink.
const RESPONSE_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of calls that wait for the client's task.
const COMMANDS_MAX: usize = 64;
/// Maximum number of connection events kept for a slow listener. If there are more, it misses the oldest.
const CONNECTION_EVENTS_MAX: usize = 64;

/// A client of one application, with the convention of the data clients of The Things Network v2.
///
/// A lost connection is made again, with its subscriptions and the downlinks that the broker has not acknowledged. Only
/// a refused credential or subscription is final. The connection lasts as long as the client, one of its streams or one
/// of its listeners.
#[derive(Debug)]
pub struct DataClient {
    app_id: AppId,
    address: String,
    commands: mpsc::Sender<Command>,
    events: broadcast::Sender<ConnectionEvent>,
}

/// A running listener of [`DataClient::on`], for [`DataClient::off`].
#[derive(Debug)]
#[must_use = "without it, the listener cannot be stopped"]
pub struct Listener(AbortHandle);

impl DataClient {
    /// Connects to an address like `localhost:1883`, in the form that a handler announces.
    ///
    /// A broker at an `mqtts://` address must have a certificate that this machine trusts.
    pub async fn connect(address: &str, app_id: &AppId, credential: &Credential) -> Result<Self> {
        Self::connect_with_trust(address, &Trust::of_mqtt(address), app_id, credential).await
    }

    /// Connects to a broker whose certificate `trust` accepts.
    pub async fn connect_with_trust(
        address: &str,
        trust: &Trust,
        app_id: &AppId,
        credential: &Credential,
    ) -> Result<Self> {
        let endpoint = endpoint(address, trust, app_id, credential)?;
        let link = Link::connect(endpoint).await.map_err(|lost| connection_error(address, lost))?;
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let (events, _) = broadcast::channel(CONNECTION_EVENTS_MAX);
        let actor = Actor::new(app_id.clone(), address.to_owned(), link, events.clone());
        tokio::spawn(actor.run(received));
        Ok(Self { app_id: app_id.clone(), address: address.to_owned(), commands, events })
    }

    /// Calls back with each message, until [`DataClient::off`]. The broker has granted the subscription when it returns.
    ///
    /// A listener has a task and a queue of its own, as a stream has, so that a slow one holds up nobody else.
    pub async fn on(
        &self,
        topics: Topics,
        mut callback: impl FnMut(&DevId, &Message) + Send + 'static,
    ) -> Result<Listener> {
        let mut stream = self.stream(topics).await?;
        let task = tokio::spawn(async move {
            while let Some(received) = stream.next().await {
                match received {
                    Ok(received) => callback(&received.dev_id, &received.message),
                    Err(error) => tracing::warn!(%error, "a listener missed messages"),
                }
            }
        });
        Ok(Listener(task.abort_handle()))
    }

    /// Calls back with each event of the connection from now on.
    pub fn on_connection(&self, mut callback: impl FnMut(&ConnectionEvent) + Send + 'static) -> Listener {
        let mut events = self.events.subscribe();
        let task = tokio::spawn(async move {
            loop {
                match events.recv().await {
                    Ok(event) => callback(&event),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        });
        Listener(task.abort_handle())
    }

    /// Stops a listener. Its subscription ends with the last listener or stream that needs it.
    pub fn off(&self, Listener(task): Listener) {
        task.abort();
    }

    /// The messages as an asynchronous stream. The broker has granted the subscription when it returns.
    pub async fn stream(&self, topics: Topics) -> Result<MessageStream> {
        let (done, granted) = oneshot::channel();
        let (stream, queue) = MessageStream::new(&self.address, self.commands.clone());
        self.command(Command::Listen { topics, queue, done }).await?;
        self.answer(granted).await??;
        Ok(stream)
    }

    /// Sends a downlink; returns when the broker has acknowledged it.
    ///
    /// MQTT 3.1.1 cannot report that the credential lacks the right to send downlinks: the broker acknowledges such a
    /// message and drops it.
    #[expect(clippy::too_many_arguments, reason = "these are the arguments of all data clients")]
    pub async fn send(
        &self,
        dev_id: &DevId,
        payload: impl Into<Payload>,
        port: u8,
        confirmed: bool,
        schedule: Schedule,
    ) -> Result<()> {
        let payload = downlink::json(payload.into(), port, confirmed, schedule)?;
        let (done, acknowledged) = oneshot::channel();
        let topic = format!("{}/devices/{dev_id}/down", self.app_id);
        self.command(Command::Send(PendingDownlink { topic, payload: payload.into(), done })).await?;
        self.answer(acknowledged).await?
    }

    /// Closes the connection, after waiting up to 10 s for the acknowledgements of downlinks unless `force` is set.
    pub async fn close(self, force: bool) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Close { force, done }).await.is_err()
            || timeout(RESPONSE_WAIT, closed).await.is_err()
        {
            tracing::debug!(address = self.address, "the connection had ended, or the broker did not answer in time");
        }
    }

    /// The same as [`DataClient::close`].
    pub async fn end(self, force: bool) {
        self.close(force).await;
    }

    async fn command(&self, command: Command) -> Result<()> {
        self.commands.send(command).await.map_err(|_| self.ended())
    }

    async fn answer<T>(&self, answer: oneshot::Receiver<T>) -> Result<T> {
        match timeout(RESPONSE_WAIT, answer).await {
            Ok(answer) => answer.map_err(|_| self.ended()),
            Err(_) => Err(Error::Timeout { service: SERVICE, address: self.address.clone() }),
        }
    }

    fn ended(&self) -> Error {
        Error::Ended { service: SERVICE, address: self.address.clone() }
    }
}
