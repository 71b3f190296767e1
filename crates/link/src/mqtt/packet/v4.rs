//! MQTT 3.1.1.

use bytes::BytesMut;
use rumqttc::mqttbytes::{
    Error, Protocol as Version, QoS,
    v4::{
        ConnAck, Connect, ConnectReturnCode, Login, Packet, SubAck, Subscribe, SubscribeFilter, SubscribeReasonCode,
        Unsubscribe,
    },
};

use super::{Connected, Event, KEEP_ALIVE_S, PACKET_BYTES_MAX, PROTOCOL_PACKET_BYTES_MAX, Received, Role, unwritable};
use crate::mqtt::{endpoint::Endpoint, lost::Lost, protocol::Protocol};

/// MQTT 3.1.1 has no way to tell the broker what is too large, so larger packets than [`PACKET_BYTES_MAX`] are received
/// and dropped: otherwise the broker would send them again and again.
const READ_BYTES_MAX: usize = PROTOCOL_PACKET_BYTES_MAX as usize;

pub(super) fn connect(endpoint: &Endpoint, role: Role, out: &mut BytesMut) -> Result<(), Lost> {
    let login = endpoint.login().map(|(username, password)| Login::new(username, password.expose()));
    let connect = Connect {
        protocol: Version::V4,
        keep_alive: KEEP_ALIVE_S,
        client_id: endpoint.client_id.clone(),
        clean_session: !matches!(role, Role::Subscriber { keeps_session: true, .. }),
        last_will: None,
        login,
    };
    write(&Packet::Connect(connect), out)
}

pub(super) fn subscribe(packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
    let filters = filters.iter().map(|filter| SubscribeFilter::new(filter.clone(), QoS::AtLeastOnce));
    write(&Packet::Subscribe(Subscribe { pkid: packet, ..Subscribe::new_many(filters) }), out)
}

pub(super) fn unsubscribe(packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
    write(&Packet::Unsubscribe(Unsubscribe { pkid: packet, topics: filters.into() }), out)
}

fn write(packet: &Packet, out: &mut BytesMut) -> Result<(), Lost> {
    packet.write(out, READ_BYTES_MAX).map(drop).map_err(unwritable)
}

pub(super) fn read(input: &mut BytesMut) -> Result<Option<Event>, Lost> {
    loop {
        let packet = match Packet::read(input, READ_BYTES_MAX) {
            Ok(packet) => packet,
            Err(Error::InsufficientBytes(_)) => return Ok(None),
            Err(error) => return Err(Lost::unreadable(error, Protocol::V4)),
        };
        if let Some(event) = event(packet)? {
            return Ok(Some(event));
        }
    }
}

/// The event of a packet; none for one that says nothing to us.
fn event(packet: Packet) -> Result<Option<Event>, Lost> {
    Ok(Some(match packet {
        Packet::ConnAck(response) => Event::Connected(connected(&response)?),
        Packet::SubAck(response) => {
            Event::Subscribed { packet: response.pkid, refusal: subscription_refusal(&response) }
        }
        Packet::UnsubAck(_) => Event::Unsubscribed,
        Packet::Publish(message) => Event::Received(Received {
            topic: message.topic,
            packet: (message.qos != QoS::AtMostOnce).then_some(message.pkid),
            payload: message.payload,
            is_duplicate: message.dup,
            is_retained: message.retain,
        }),
        Packet::PubAck(response) => Event::Confirmed { packet: response.pkid, refusal: None },
        Packet::PingResp => Event::Pong,
        _ => return Ok(None),
    }))
}

fn connected(ConnAck { code, session_present }: &ConnAck) -> Result<Connected, Lost> {
    if *code != ConnectReturnCode::Success {
        return Err(Lost::refused(format!("{code:?}"), false));
    }
    Ok(Connected {
        has_session: *session_present,
        has_shared_subscriptions: false,
        packet_bytes_max: PACKET_BYTES_MAX,
        in_flight_max: u16::MAX,
        keep_alive_s: KEEP_ALIVE_S,
    })
}

fn subscription_refusal(response: &SubAck) -> Option<String> {
    response.return_codes.contains(&SubscribeReasonCode::Failure).then(|| "Failure".to_owned())
}
