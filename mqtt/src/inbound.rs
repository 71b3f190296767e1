//! What a client sends after its CONNECT: packets are passed on, rewritten or refused.

use std::time::Duration;

use mqtt5::{PacketType, QoS, types::ReasonCode};
use tokio::time::{Instant, sleep_until};

use crate::{connect::Connect, packet::ControlPacket};

/// Maximum number of filters in one packet; a client may hold fewer subscriptions anyway.
const FILTERS_MAX: usize = 64;

/// Checks and rewrites the packets of one client.
pub(crate) struct Inbound<'a> {
    connect: &'a Connect,
    pace: PublishPace,
}

impl<'a> Inbound<'a> {
    pub(crate) fn new(connect: &'a Connect, publishes_per_second_max: u32) -> Self {
        Self { connect, pace: PublishPace::new(publishes_per_second_max) }
    }

    /// Returns the packet for the engine, or the reason to disconnect the client.
    pub(crate) async fn check(&mut self, packet: ControlPacket) -> Result<ControlPacket, ReasonCode> {
        match packet.packet_type() {
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

    /// Messages are never retained; only MQTT 5 has a reason code to say so.
    fn publish(&self, packet: ControlPacket) -> Result<ControlPacket, ReasonCode> {
        match self.connect.version() {
            5 if packet.is_retained() => Err(ReasonCode::RetainNotSupported),
            _ => Ok(packet.without_retain()),
        }
    }

    fn subscribe(&self, packet: &ControlPacket) -> Result<ControlPacket, ReasonCode> {
        let mut subscribe = packet.subscribe(self.connect.version()).map_err(|_| ReasonCode::MalformedPacket)?;
        check_count(subscribe.filters.len())?;
        for filter in &mut subscribe.filters {
            filter.filter = self.connect.permissions.narrow(&filter.filter);
            // The SUBACK tells the client that it is granted QoS 1.
            if filter.options.qos == QoS::ExactlyOnce {
                filter.options.qos = QoS::AtLeastOnce;
            }
        }
        ControlPacket::encode(&subscribe).map_err(|_| ReasonCode::MalformedPacket)
    }

    fn unsubscribe(&self, packet: &ControlPacket) -> Result<ControlPacket, ReasonCode> {
        let mut unsubscribe = packet.unsubscribe(self.connect.version()).map_err(|_| ReasonCode::MalformedPacket)?;
        check_count(unsubscribe.filters.len())?;
        for filter in &mut unsubscribe.filters {
            *filter = self.connect.permissions.narrow(filter);
        }
        ControlPacket::encode(&unsubscribe).map_err(|_| ReasonCode::MalformedPacket)
    }
}

fn check_count(filters: usize) -> Result<(), ReasonCode> {
    if filters <= FILTERS_MAX { Ok(()) } else { Err(ReasonCode::QuotaExceeded) }
}

/// Slows down a client that publishes too fast: it is not read from, so its socket fills and nothing is lost.
struct PublishPace {
    per_second_max: u32,
    second: Instant,
    published: u32,
}

impl PublishPace {
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
