//! What a client may send once it is known: packets pass, change on the way, or end the connection.

use std::time::Duration;

use mqtt5::{PacketType, QoS, types::ReasonCode};
use tokio::time::{Instant, sleep_until};

use crate::{connect::Greeting, packet::ControlPacket};

/// The most filters in one packet; a client may have fewer subscriptions than that anyway.
const FILTERS_MAX: usize = 64;

/// What a client may send after its CONNECT, and how it is changed on the way.
pub(crate) struct Rules<'a> {
    greeting: &'a Greeting,
    pace: Pace,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(greeting: &'a Greeting, publishes_per_second_max: u32) -> Self {
        Self { greeting, pace: Pace::new(publishes_per_second_max) }
    }

    /// The packet as the engine shall see it, or why the connection ends here.
    pub(crate) async fn apply(&mut self, packet: ControlPacket) -> Result<ControlPacket, ReasonCode> {
        match packet.sort() {
            Some(PacketType::Publish) => {
                self.pace.wait().await;
                self.publish(packet)
            }
            Some(PacketType::Subscribe) => self.subscribe(&packet),
            Some(PacketType::Unsubscribe) => self.unsubscribe(&packet),
            Some(
                PacketType::PubAck
                | PacketType::PubRec
                | PacketType::PubRel
                | PacketType::PubComp
                | PacketType::PingReq
                | PacketType::Disconnect
                | PacketType::Auth,
            ) => Ok(packet),
            _ => Err(ReasonCode::ProtocolError),
        }
    }

    /// Nothing is retained; only MQTT 5 has a word for that.
    fn publish(&self, packet: ControlPacket) -> Result<ControlPacket, ReasonCode> {
        match self.greeting.version() {
            5 if packet.retains() => Err(ReasonCode::RetainNotSupported),
            _ => Ok(packet.without_retain()),
        }
    }

    fn subscribe(&self, packet: &ControlPacket) -> Result<ControlPacket, ReasonCode> {
        let mut subscribe = packet.subscribe(self.greeting.version()).map_err(|_| ReasonCode::MalformedPacket)?;
        check_count(subscribe.filters.len())?;
        for filter in &mut subscribe.filters {
            filter.filter = self.greeting.tenant.scope(&filter.filter);
            // Twice is often enough: the granted quality of service says so.
            if filter.options.qos == QoS::ExactlyOnce {
                filter.options.qos = QoS::AtLeastOnce;
            }
        }
        ControlPacket::encode(&subscribe).map_err(|_| ReasonCode::MalformedPacket)
    }

    fn unsubscribe(&self, packet: &ControlPacket) -> Result<ControlPacket, ReasonCode> {
        let mut unsubscribe = packet.unsubscribe(self.greeting.version()).map_err(|_| ReasonCode::MalformedPacket)?;
        check_count(unsubscribe.filters.len())?;
        for filter in &mut unsubscribe.filters {
            *filter = self.greeting.tenant.scope(filter);
        }
        ControlPacket::encode(&unsubscribe).map_err(|_| ReasonCode::MalformedPacket)
    }
}

fn check_count(filters: usize) -> Result<(), ReasonCode> {
    if filters <= FILTERS_MAX { Ok(()) } else { Err(ReasonCode::QuotaExceeded) }
}

/// Holds up a client that publishes faster than it may; its socket fills, and nothing is lost.
struct Pace {
    per_second_max: u32,
    second: Instant,
    published: u32,
}

impl Pace {
    fn new(per_second_max: u32) -> Self {
        Self { per_second_max, second: Instant::now(), published: 0 }
    }

    async fn wait(&mut self) {
        let next = self.second + Duration::from_secs(1);
        if self.published >= self.per_second_max {
            sleep_until(next).await;
        }
        if Instant::now() >= next {
            (self.second, self.published) = (Instant::now(), 0);
        }
        self.published += 1;
    }
}
