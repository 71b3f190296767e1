//! The connection itself: kept up in a task of its own, which reports what happens.

use std::time::Duration;

use rumqttc::{ConnectReturnCode, ConnectionError, Event, EventLoop, Packet, SubscribeReasonCode};
use tokio::{sync::mpsc, time::sleep};

use super::Message;

/// The wait after the first failure; each further one doubles it, up to the longest.
const RETRY_WAIT: Duration = Duration::from_millis(100);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

/// What the connection reports.
#[derive(Debug)]
pub(super) enum Happening {
    Connected,
    Subscribed { granted: bool },
    Accepted,
    Arrived(Message),
    Failed(ConnectionError),
}

/// Keeps the connection up and reports what happens, until nobody listens or nothing helps any more.
pub(super) async fn keep(mut events: EventLoop, report: mpsc::Sender<Happening>) {
    let mut network = events.network_options();
    network.set_tcp_nodelay(true);
    events.set_network_options(network);
    let mut wait = RETRY_WAIT;
    loop {
        let polled = tokio::select! {
            polled = events.poll() => polled,
            () = report.closed() => return,
        };
        let failed = polled.is_err();
        let Some(happening) = happening(polled) else { continue };
        let is_final = matches!(&happening, Happening::Failed(error) if is_final(error));
        if matches!(happening, Happening::Connected) {
            wait = RETRY_WAIT;
        }
        if report.send(happening).await.is_err() || is_final {
            return;
        }
        if failed {
            sleep(wait).await;
            wait = (wait * 2).min(RETRY_WAIT_MAX);
        }
    }
}

fn happening(polled: Result<Event, ConnectionError>) -> Option<Happening> {
    match polled {
        Ok(Event::Incoming(Packet::ConnAck(_))) => Some(Happening::Connected),
        Ok(Event::Incoming(Packet::SubAck(answer))) => {
            let granted = answer.return_codes.iter().all(|code| *code != SubscribeReasonCode::Failure);
            Some(Happening::Subscribed { granted })
        }
        Ok(Event::Incoming(Packet::PubAck(_))) => Some(Happening::Accepted),
        Ok(Event::Incoming(Packet::Publish(message))) => {
            Some(Happening::Arrived(Message { topic: message.topic, payload: message.payload.into() }))
        }
        Ok(_) => None,
        Err(error) => Some(Happening::Failed(error)),
    }
}

/// Whether trying again cannot help.
pub(super) fn is_final(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionRefused(code) if is_verdict(*code))
}

/// Whether the broker judged the client, rather than itself.
pub(super) fn is_verdict(code: ConnectReturnCode) -> bool {
    code != ConnectReturnCode::ServiceUnavailable
}
