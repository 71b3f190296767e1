//! The connection to the broker, which is made again when it is lost.

use std::pin::Pin;

use futures::future::BoxFuture;
use link::{
    backoff::Backoff,
    mqtt::{BrokerConnection, Endpoint, Event, Lost, Protocol, Role},
};
use tokio::time::Sleep;

/// An event of the connections to the broker, one after the other.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// There is a new connection.
    Connected,
    /// It was lost, or could not be made.
    Lost(Lost),
    /// Another attempt begins.
    Reconnecting,
    /// Something came on the connection.
    Came(Event),
}

/// A connection that is made again until nobody asks for its events any more.
pub(super) struct Link {
    endpoint: Endpoint,
    state: LinkState,
    backoff: Backoff,
}

enum LinkState {
    Connected(Box<BrokerConnection>),
    Waiting(Pin<Box<Sleep>>),
    Connecting(BoxFuture<'static, Result<BrokerConnection, Lost>>),
}

impl Link {
    /// Connects for the first time.
    pub(super) async fn connect(endpoint: Endpoint) -> Result<Self, Lost> {
        let state = LinkState::Connected(Box::new(connect(endpoint.clone()).await?));
        Ok(Self { endpoint, state, backoff: Backoff::default() })
    }

    /// The name of this client at the broker.
    pub(super) fn client_id(&self) -> &str {
        &self.endpoint.client_id
    }

    /// The connection, while there is one.
    pub(super) fn connection(&mut self) -> Option<&mut BrokerConnection> {
        match &mut self.state {
            LinkState::Connected(connection) => Some(connection),
            LinkState::Waiting(_) | LinkState::Connecting(_) => None,
        }
    }

    /// The next event. The future may be dropped at any time.
    pub(super) async fn next(&mut self) -> LinkEvent {
        match &mut self.state {
            LinkState::Connected(connection) => match connection.next().await {
                Ok(event) => LinkEvent::Came(event),
                Err(lost) => self.lost(lost),
            },
            LinkState::Waiting(pause) => {
                pause.await;
                self.state = LinkState::Connecting(Box::pin(connect(self.endpoint.clone())));
                LinkEvent::Reconnecting
            }
            LinkState::Connecting(attempt) => match attempt.await {
                Ok(connection) => {
                    self.backoff.reset();
                    self.state = LinkState::Connected(Box::new(connection));
                    LinkEvent::Connected
                }
                Err(lost) => self.lost(lost),
            },
        }
    }

    fn lost(&mut self, lost: Lost) -> LinkEvent {
        self.state = LinkState::Waiting(Box::pin(self.backoff.pause()));
        LinkEvent::Lost(lost)
    }

    /// Ends the connection behind what is to be sent.
    pub(super) async fn disconnect(self) {
        if let LinkState::Connected(connection) = self.state {
            connection.disconnect().await;
        }
    }
}

async fn connect(endpoint: Endpoint) -> Result<BrokerConnection, Lost> {
    BrokerConnection::open(&endpoint, Protocol::V4, Role::Program).await
}
