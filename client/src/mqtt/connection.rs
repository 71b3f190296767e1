//! A connection to an MQTT broker that reconnects by itself.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use rumqttc::{AsyncClient, ConnectionError, Event, EventLoop, MqttOptions, Packet};
use tokio::time::sleep;

/// The shortest and longest delays before jitter, which adds up to as much again.
const RETRY_DELAY_MIN: Duration = Duration::from_millis(50);
pub(crate) const RETRY_DELAY_MAX: Duration = Duration::from_secs(15);

/// The receiving half of a connection. It is connected only while it is polled.
pub struct Connection {
    /// The event loop, with the requests that are not sent yet.
    pub events: EventLoop,
    retries: ExponentialBuilder,
    backoff: ExponentialBackoff,
    delay: Option<Duration>,
}

impl Connection {
    /// Makes a connection whose client queues up to `queue_max` requests.
    ///
    /// Jitter spreads the reconnections of many clients that lost the same broker; its seed is random if none is given.
    pub fn new(options: MqttOptions, queue_max: usize, jitter_seed: Option<u64>) -> (AsyncClient, Self) {
        let (client, mut events) = AsyncClient::new(options, queue_max);
        let mut network = events.network_options();
        network.set_tcp_nodelay(true);
        events.set_network_options(network);
        let retries = retries();
        let retries = jitter_seed.map_or(retries, |seed| retries.with_jitter_seed(seed));
        (client, Self { events, retries, backoff: retries.build(), delay: None })
    }

    /// Waits for the next event.
    ///
    /// An error means that the connection broke, or could not be made. The next call waits and then connects again,
    /// so a caller that wants to stay connected just keeps polling. The wait doubles with each failure in a row, from
    /// about 0.1 s to about 30 s.
    pub async fn poll(&mut self) -> Result<Event, ConnectionError> {
        if let Some(delay) = self.delay {
            sleep(delay).await;
            self.delay = None;
        }
        let polled = self.events.poll().await;
        match &polled {
            Ok(Event::Incoming(Packet::ConnAck(_))) => self.backoff = self.retries.build(),
            Ok(_) => {}
            Err(_) => self.delay = self.backoff.next(),
        }
        polled
    }
}

/// The pauses between attempts to connect.
pub(crate) fn retries() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(RETRY_DELAY_MIN)
        .with_max_delay(RETRY_DELAY_MAX)
        .without_max_times()
        .with_jitter()
}
