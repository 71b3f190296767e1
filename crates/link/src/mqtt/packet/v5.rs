//! MQTT 5.

use bytes::BytesMut;
use rumqttc::v5::mqttbytes::{
    Error, QoS,
    v5::{
        ConnAck, Connect, ConnectProperties, ConnectReturnCode, Filter, Login, Packet, PubAck, PubAckReason, SubAck,
        Subscribe, SubscribeReasonCode, Unsubscribe,
    },
};

use super::{Connected, Event, KEEP_ALIVE_S, PACKET_BYTES_MAX, PROTOCOL_PACKET_BYTES_MAX, Received, Role, unwritable};
use crate::mqtt::{endpoint::Endpoint, lost::Lost, protocol::Protocol};

/// Time for which a broker keeps a session without a connection, and the messages queued for it. MQTT 3.1.1 cannot say.
const SESSION_EXPIRY_S: u32 = 24 * 60 * 60;

pub(super) fn connect(endpoint: &Endpoint, role: Role, out: &mut BytesMut) -> Result<(), Lost> {
    let (receive_maximum, keeps_session) = match role {
        Role::Subscriber { in_flight_max, keeps_session } => (Some(in_flight_max), keeps_session),
        Role::Publisher | Role::Program => (None, false),
    };
    let properties = ConnectProperties {
        session_expiry_interval: keeps_session.then_some(SESSION_EXPIRY_S),
        receive_maximum,
        max_packet_size: Some(PACKET_BYTES_MAX),
        ..ConnectProperties::new()
    };
    let connect = Connect {
        keep_alive: KEEP_ALIVE_S,
        client_id: endpoint.client_id.clone(),
        clean_start: !keeps_session,
        properties: Some(properties),
    };
    let login = endpoint.login().map(|(username, password)| Login::new(username, password.expose()));
    write(&Packet::Connect(connect, None, login), out)
}

pub(super) fn subscribe(packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
    let filters = filters.iter().map(|filter| Filter::new(filter, QoS::AtLeastOnce));
    write(&Packet::Subscribe(Subscribe { pkid: packet, ..Subscribe::new_many(filters, None) }), out)
}

pub(super) fn unsubscribe(packet: u16, filters: &[String], out: &mut BytesMut) -> Result<(), Lost> {
    write(&Packet::Unsubscribe(Unsubscribe { pkid: packet, filters: filters.into(), properties: None }), out)
}

fn write(packet: &Packet, out: &mut BytesMut) -> Result<(), Lost> {
    packet.write(out, None).map(drop).map_err(unwritable)
}

pub(super) fn read(input: &mut BytesMut) -> Result<Option<Event>, Lost> {
    loop {
        let packet = match Packet::read(input, Some(PACKET_BYTES_MAX)) {
            Ok(packet) => packet,
            Err(Error::InsufficientBytes(_)) => return Ok(None),
            Err(error) => return Err(Lost::unreadable(error, Protocol::V5)),
        };
        if let Some(event) = event(packet)? {
            return Ok(Some(event));
        }
    }
}

/// The event of a packet; none for one that says nothing to us.
fn event(packet: Packet) -> Result<Option<Event>, Lost> {
    Ok(Some(match packet {
        Packet::ConnAck(response) => Event::Connected(connected(response)?),
        Packet::SubAck(response) => {
            Event::Subscribed { packet: response.pkid, refusal: subscription_refusal(&response) }
        }
        Packet::UnsubAck(_) => Event::Unsubscribed,
        Packet::Publish(message) => Event::Received(Received {
            topic: String::from_utf8_lossy(&message.topic).into_owned(),
            packet: (message.qos != QoS::AtMostOnce).then_some(message.pkid),
            payload: message.payload,
            is_duplicate: message.dup,
            is_retained: message.retain,
        }),
        Packet::PubAck(response) => Event::Confirmed { packet: response.pkid, refusal: refusal(&response) },
        Packet::PingResp(_) => Event::Pong,
        Packet::Disconnect(end) => {
            return Err(Lost::because(format!("the broker ended the connection ({:?})", end.reason_code)));
        }
        _ => return Ok(None),
    }))
}

fn connected(ConnAck { code, properties, session_present }: ConnAck) -> Result<Connected, Lost> {
    use ConnectReturnCode as Code;
    if code != Code::Success {
        let is_version_refused = matches!(code, Code::UnsupportedProtocolVersion | Code::RefusedProtocolVersion);
        return Err(Lost::refused(format!("{code:?}"), is_version_refused));
    }
    let said = properties.as_ref();
    // A broker that wants no keep-alive may be pinged all the same.
    let keep_alive_s = said.and_then(|said| said.server_keep_alive).filter(|seconds| *seconds > 0);
    Ok(Connected {
        has_session: session_present,
        has_shared_subscriptions: said.and_then(|said| said.shared_subscription_available) != Some(0),
        packet_bytes_max: said.and_then(|said| said.max_packet_size).unwrap_or(PROTOCOL_PACKET_BYTES_MAX),
        in_flight_max: said.and_then(|said| said.receive_max).unwrap_or(u16::MAX),
        keep_alive_s: keep_alive_s.unwrap_or(KEEP_ALIVE_S),
    })
}

fn subscription_refusal(response: &SubAck) -> Option<String> {
    let refused = response.return_codes.iter().find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
    refused.map(|code| format!("{code:?}"))
}

fn refusal(response: &PubAck) -> Option<String> {
    let is_accepted = matches!(response.reason, PubAckReason::Success | PubAckReason::NoMatchingSubscribers);
    (!is_accepted).then(|| format!("{:?}", response.reason))
}
