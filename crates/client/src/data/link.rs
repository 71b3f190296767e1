//! Connections to the broker, one after the other.

use backon::{BackoffBuilder, ExponentialBuilder};
use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, MqttOptions, Outgoing, Packet, Publish, SubscribeReasonCode,
};
use tokio::{sync::mpsc, time::sleep};
use types::{AppId, Credential};

use super::connect::{RETRY_DELAY_MAX, SERVICE, connection_error, is_permanent, options, retries};
use crate::{Error, Result, Trust};

/// Maximum number of requests that wait for the connection: more than messages, downlinks and filters together.
const REQUESTS_MAX: usize = 8192;
/// Maximum number of events that wait for the client's task.
const EVENTS_MAX: usize = 64;

/// An event of the connections to the broker.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// There is a new connection.
    Connected(AsyncClient),
    /// It was lost, or could not be made.
    Lost(ConnectionError),
    /// Another attempt begins.
    Reconnecting,
    /// The next requested subscription is in the packet of this number.
    Subscribing(u16),
    Subscribed {
        packet: u16,
        granted: bool,
    },
    /// The next publication is in the packet of this number.
    Sent(u16),
    Acknowledged(u16),
    Received(Publish),
}

/// The task that keeps a connection up.
#[derive(Debug)]
pub(super) struct Link {
    events: mpsc::Receiver<LinkEvent>,
    address: String,
}

/// Acknowledges a message when it is dropped. On a connection that has ended, it does nothing.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    client: AsyncClient,
    message: Publish,
}

impl Link {
    pub(super) fn start(address: &str, trust: &Trust, login: (&AppId, &Credential), client_id: &str) -> Result<Self> {
        let mut options = options(address, trust, login, client_id)?;
        options.set_manual_acks(true);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(run(options, retries(), sender));
        Ok(Self { events, address: address.to_owned() })
    }

    /// Waits for the first connection.
    pub(super) async fn connected(&mut self) -> Result<AsyncClient> {
        match self.next().await {
            Some(LinkEvent::Connected(client)) => Ok(client),
            Some(LinkEvent::Lost(error)) => Err(connection_error(&self.address, error)),
            _ => Err(Error::Ended { service: SERVICE, address: self.address.clone() }),
        }
    }

    /// The next event; none after the end.
    pub(super) async fn next(&mut self) -> Option<LinkEvent> {
        self.events.recv().await
    }
}

impl Acknowledgement {
    pub(super) fn new(client: AsyncClient, message: &Publish) -> Self {
        // The library needs the packet's number only.
        let mut acknowledged = Publish::new("", message.qos, Vec::new());
        acknowledged.pkid = message.pkid;
        Self { client, message: acknowledged }
    }
}

impl Drop for Acknowledgement {
    fn drop(&mut self) {
        if self.client.try_ack(&self.message).is_err() {
            tracing::debug!(packet = self.message.pkid, "the connection ended before an acknowledgement");
        }
    }
}

/// Connects until it is refused or nobody listens any more.
async fn run(options: MqttOptions, retries: ExponentialBuilder, events: mpsc::Sender<LinkEvent>) {
    let mut backoff = retries.build();
    loop {
        // A new client for each connection, so that no request of an earlier one is repeated.
        let (client, mut connection) = AsyncClient::new(options.clone(), REQUESTS_MAX);
        let mut network = connection.network_options();
        network.set_tcp_nodelay(true);
        connection.set_network_options(network);
        let Some((was_connected, lost)) = serve(&client, &mut connection, &events).await else { return };
        if was_connected {
            backoff = retries.build();
        }
        let is_last = is_permanent(&lost);
        if events.send(LinkEvent::Lost(lost)).await.is_err() || is_last {
            return;
        }
        tokio::select! {
            () = sleep(backoff.next().unwrap_or(RETRY_DELAY_MAX)) => {}
            () = events.closed() => return,
        }
        if events.send(LinkEvent::Reconnecting).await.is_err() {
            return;
        }
    }
}

/// Serves one connection; returns why it was lost, or `None` if it is not wanted any more.
async fn serve(
    client: &AsyncClient,
    connection: &mut EventLoop,
    events: &mpsc::Sender<LinkEvent>,
) -> Option<(bool, ConnectionError)> {
    let mut was_connected = false;
    loop {
        let polled = tokio::select! {
            polled = connection.poll() => polled,
            () = events.closed() => return None,
        };
        let event = match polled {
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return None,
            Ok(event) => link_event(event, client),
            Err(error) => return Some((was_connected, error)),
        };
        was_connected |= matches!(event, Some(LinkEvent::Connected(_)));
        if let Some(event) = event {
            events.send(event).await.ok()?;
        }
    }
}

fn link_event(event: Event, client: &AsyncClient) -> Option<LinkEvent> {
    Some(match event {
        Event::Incoming(Packet::ConnAck(_)) => LinkEvent::Connected(client.clone()),
        Event::Incoming(Packet::SubAck(response)) => {
            let granted = !response.return_codes.contains(&SubscribeReasonCode::Failure);
            LinkEvent::Subscribed { packet: response.pkid, granted }
        }
        Event::Incoming(Packet::PubAck(response)) => LinkEvent::Acknowledged(response.pkid),
        Event::Incoming(Packet::Publish(message)) => LinkEvent::Received(message),
        Event::Outgoing(Outgoing::Subscribe(packet)) => LinkEvent::Subscribing(packet),
        Event::Outgoing(Outgoing::Publish(packet)) => LinkEvent::Sent(packet),
        _ => return None,
    })
}
