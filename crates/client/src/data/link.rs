//! Connections to the broker, one after the other.

use link::backoff::Backoff;
use rumqttc::{ConnectionError, Event, Outgoing, Packet, Publish, SubscribeReasonCode};
use tokio::sync::mpsc;
use types::{AppId, Credential};

use super::{
    connect::{Endpoint, SERVICE, connection_error, is_permanent},
    connection::{Connection, Requests},
};
use crate::{Error, Result, Trust};

/// Maximum number of events that wait for the client's task.
const EVENTS_MAX: usize = 64;

/// An event of the connections to the broker.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// There is a new connection.
    Connected(Requests),
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
    requests: Requests,
    packet: u16,
}

impl Link {
    pub(super) fn start(address: &str, trust: &Trust, login: (&AppId, &Credential), client_id: &str) -> Result<Self> {
        let endpoint = Endpoint::new(address, trust, login, client_id)?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(run(endpoint, sender));
        Ok(Self { events, address: address.to_owned() })
    }

    /// Waits for the first connection.
    pub(super) async fn connected(&mut self) -> Result<Requests> {
        match self.next().await {
            Some(LinkEvent::Connected(requests)) => Ok(requests),
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
    pub(super) fn new(requests: Requests, packet: u16) -> Self {
        Self { requests, packet }
    }
}

impl Drop for Acknowledgement {
    fn drop(&mut self) {
        if self.requests.acknowledge(self.packet).is_err() {
            tracing::debug!(packet = self.packet, "the connection ended before an acknowledgement");
        }
    }
}

/// Connects until it is refused or nobody listens any more.
async fn run(endpoint: Endpoint, events: mpsc::Sender<LinkEvent>) {
    let mut backoff = Backoff::default();
    loop {
        // With requests of its own, so that none of an earlier connection is repeated.
        let opened = tokio::select! {
            opened = Connection::open(&endpoint) => opened,
            () = events.closed() => return,
        };
        let lost = match opened {
            Ok((requests, connection)) => {
                backoff.reset();
                let Some(lost) = serve(requests, connection, &events).await else { return };
                lost
            }
            Err(error) => error,
        };
        let is_last = is_permanent(&lost);
        if events.send(LinkEvent::Lost(lost)).await.is_err() || is_last {
            return;
        }
        tokio::select! {
            () = backoff.pause() => {}
            () = events.closed() => return,
        }
        if events.send(LinkEvent::Reconnecting).await.is_err() {
            return;
        }
    }
}

/// Serves one connection; returns why it was lost, or `None` if it is not wanted any more.
async fn serve(
    requests: Requests,
    mut connection: Connection,
    events: &mpsc::Sender<LinkEvent>,
) -> Option<ConnectionError> {
    events.send(LinkEvent::Connected(requests.clone())).await.ok()?;
    loop {
        let next = tokio::select! {
            next = connection.next() => next,
            () = events.closed() => return None,
        };
        let event = match next {
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return None,
            Ok(event) => link_event(event),
            Err(error) => return Some(error),
        };
        if let Some(event) = event {
            events.send(event).await.ok()?;
        }
    }
}

fn link_event(event: Event) -> Option<LinkEvent> {
    Some(match event {
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
