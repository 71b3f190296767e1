//! An MQTT client that works packet by packet, so that tests see every code and can violate the protocol.

use std::{collections::VecDeque, net::SocketAddr};

use mqtt5_protocol::{
    QoS, WillMessage,
    packet::{
        MqttPacket, connect::ConnectPacket, publish::PublishPacket, subscribe::SubscribePacket,
        unsubscribe::UnsubscribePacket,
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::harness::eventually;

/// The protocol version of MQTT 3.1.
pub const MQTT_31: u8 = 0;

/// The contents of a CONNECT packet.
#[derive(Clone)]
pub struct Login {
    pub version: u8,
    pub user: Option<&'static str>,
    pub password: Option<&'static str>,
    pub client_id: &'static str,
    pub clean: bool,
    /// True if the session ends with the connection, which MQTT 5 can tell from a clean one.
    pub ends: bool,
    pub will: Option<(&'static str, bool)>,
}

impl Login {
    pub fn new(version: u8, user: &'static str, password: &'static str) -> Self {
        Self { version, user: Some(user), password: Some(password), client_id: "", clean: true, ends: true, will: None }
    }

    pub fn with_client_id(self, client_id: &'static str) -> Self {
        Self { client_id, ..self }
    }

    /// Asks for a session that outlives the connection.
    pub fn persistent(self) -> Self {
        Self { clean: false, ends: false, ..self }
    }

    pub fn with_will(self, topic: &'static str) -> Self {
        Self { will: Some((topic, false)), ..self }
    }

    pub fn packet(&self) -> ConnectPacket {
        let mut options = mqtt5_protocol::ConnectOptions::new(self.client_id);
        options.clean_start = self.clean;
        options.username = self.user.map(str::to_owned);
        options.password = self.password.map(|password| password.as_bytes().to_vec());
        options.will = self.will.map(|(topic, retain)| WillMessage { retain, ..WillMessage::new(topic, "will") });
        if !self.ends && self.version == 5 {
            options.properties.session_expiry_interval = Some(600);
        }
        let mut packet = ConnectPacket::new(options);
        packet.protocol_version = self.version;
        packet
    }

    /// The CONNECT packet as it is sent; MQTT 3.1 has another name for the protocol.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let packet = self.packet();
        if self.version != MQTT_31 {
            packet.encode(&mut body).unwrap();
            return body;
        }
        packet.encode_body(&mut body).unwrap();
        let body = [&b"\x00\x06MQIsdp\x03"[..], &body[7..]].concat();
        [&[0x10, u8::try_from(body.len()).unwrap()], &body[..]].concat()
    }
}

/// A packet: its first byte, and everything after the Remaining Length.
pub type Arrived = (u8, Vec<u8>);

/// One connection.
pub struct RawClient {
    stream: BufReader<TcpStream>,
    version: u8,
    packet_id: u16,
    early: VecDeque<Arrived>,
}

impl RawClient {
    pub async fn open(address: SocketAddr, version: u8) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), version, packet_id: 0, early: VecDeque::new() }
    }

    /// Sends a CONNECT; returns the code of the CONNACK, and whether a session was present.
    pub async fn try_connect(address: SocketAddr, login: &Login) -> (Self, u8, bool) {
        let mut client = Self::open(address, login.version).await;
        client.send(&login.bytes()).await;
        let (header, body) = eventually("the response to CONNECT", client.read()).await.expect("a response to CONNECT");
        assert_eq!(header, 0x20);
        (client, body[1], body[0] == 1)
    }

    /// The reason code of a refusal with MQTT 5, and the reason string, if it is the first property.
    pub async fn refused(address: SocketAddr, login: &Login) -> (u8, String) {
        let mut client = Self::open(address, login.version).await;
        client.send(&login.bytes()).await;
        let body = client.wait_for(0x20).await;
        let text = body.iter().position(|byte| *byte == 0x1f).map(|at| &body[at + 3..]).unwrap_or_default();
        (body[1], String::from_utf8_lossy(text).into_owned())
    }

    pub async fn connect(address: SocketAddr, login: &Login) -> Self {
        let (client, code, _) = Self::try_connect(address, login).await;
        assert_eq!(code, 0, "the client was refused");
        client
    }

    /// Subscribes with QoS 2; returns the code of the SUBACK.
    pub async fn subscribe(&mut self, filter: &str) -> u8 {
        self.packet_id += 1;
        let mut packet = SubscribePacket::new(self.packet_id).add_filter(filter, QoS::ExactlyOnce);
        packet.protocol_version = self.version;
        self.send_packet(&packet).await;
        *self.wait_for(0x90).await.last().unwrap()
    }

    pub async fn unsubscribe(&mut self, filter: &str) {
        self.packet_id += 1;
        let mut packet = UnsubscribePacket::new(self.packet_id).add_filter(filter);
        packet.protocol_version = self.version;
        self.send_packet(&packet).await;
        self.wait_for(0xb0).await;
    }

    /// Publishes with QoS 1, and waits for the PUBACK.
    pub async fn publish(&mut self, topic: &str, body: &str) {
        self.send_publish(topic, body, QoS::AtLeastOnce, false).await;
        self.wait_for(0x40).await;
    }

    /// The next PUBLISH as it came: its first byte, packet identifier and payload. Nothing is acknowledged.
    pub async fn next_unacknowledged(&mut self) -> (u8, u16, String) {
        let (header, body) = eventually("a message", self.arrived(|header| header >> 4 == 3)).await.expect("a message");
        let rest = &body[2 + usize::from(u16::from_be_bytes([body[0], body[1]]))..];
        let packet_id = u16::from_be_bytes([rest[0], rest[1]]);
        let skipped = if self.version == 5 { 3 + usize::from(rest[2]) } else { 2 };
        (header, packet_id, String::from_utf8(rest[skipped..].to_vec()).unwrap())
    }

    /// Sends a PUBACK.
    pub async fn acknowledge(&mut self, packet_id: u16) {
        let [high, low] = packet_id.to_be_bytes();
        self.send(&[0x40, 2, high, low]).await;
    }

    /// Publishes with QoS 2, and waits for the PUBCOMP.
    pub async fn publish_once(&mut self, topic: &str, body: &str) {
        self.send_publish(topic, body, QoS::ExactlyOnce, false).await;
        self.wait_for(0x50).await;
        let [high, low] = self.packet_id.to_be_bytes();
        self.send(&[0x62, 2, high, low]).await;
        self.wait_for(0x70).await;
    }

    pub async fn send_publish(&mut self, topic: &str, body: &str, qos: QoS, retain: bool) {
        self.packet_id += 1;
        let mut packet = PublishPacket::new(topic.to_owned(), body.as_bytes().to_vec(), qos);
        packet.packet_id = (qos != QoS::AtMostOnce).then_some(self.packet_id);
        packet.retain = retain;
        packet.protocol_version = self.version;
        self.send_packet(&packet).await;
    }

    /// The next message: topic and body. Acknowledges it if its QoS asks for that.
    pub async fn next(&mut self) -> (String, String) {
        let (header, body) = eventually("a message", self.arrived(|header| header >> 4 == 3)).await.expect("a message");
        let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let (topic, rest) = body[2..].split_at(length);
        let rest = if header & 0x06 == 0 {
            rest
        } else {
            self.send(&[0x40, 2, rest[0], rest[1]]).await;
            &rest[2..]
        };
        // Skips the properties of MQTT 5, whose length fits one byte here.
        let rest = if self.version == 5 { &rest[1 + usize::from(rest[0])..] } else { rest };
        (String::from_utf8(topic.to_vec()).unwrap(), String::from_utf8(rest.to_vec()).unwrap())
    }

    /// Waits until the broker closes the connection; returns the reason code of its DISCONNECT, if it sent one.
    pub async fn closed(&mut self) -> Option<u8> {
        let disconnect = eventually("the end of the connection", self.arrived(|header| header == 0xe0)).await;
        let body = disconnect?.1;
        assert!(eventually("the end of the connection", self.read()).await.is_none());
        Some(body[0])
    }

    /// Checks that the connection still works.
    pub async fn ping(&mut self) {
        self.send(&[0xc0, 0]).await;
        self.wait_for(0xd0).await;
    }

    /// Sends a DISCONNECT.
    pub async fn disconnect(mut self) {
        self.send(&[0xe0, 0]).await;
        while self.read().await.is_some() {}
    }

    pub async fn send_packet(&mut self, packet: &impl MqttPacket) {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).unwrap();
        self.send(&bytes).await;
    }

    /// Sends bytes. The connection may be closed already: that shows when the test reads.
    pub async fn send(&mut self, bytes: &[u8]) {
        _ = self.stream.get_mut().write_all(bytes).await;
    }

    /// The next packet, whatever it is; none if the connection ends.
    pub async fn first(&mut self) -> Option<Arrived> {
        eventually("an answer", self.arrived(|_| true)).await
    }

    /// The next packet with this first byte: everything after its Remaining Length.
    pub async fn wait_for(&mut self, header: u8) -> Vec<u8> {
        eventually("a response", self.arrived(|other| other == header)).await.expect("a response").1
    }

    /// The first packet whose header matches; others are kept for later.
    async fn arrived(&mut self, matches: impl Fn(u8) -> bool) -> Option<Arrived> {
        if let Some(at) = self.early.iter().position(|(header, _)| matches(*header)) {
            return self.early.remove(at);
        }
        loop {
            let packet = self.read().await?;
            if matches(packet.0) {
                return Some(packet);
            }
            self.early.push_back(packet);
        }
    }

    async fn read(&mut self) -> Option<Arrived> {
        let header = self.stream.read_u8().await.ok()?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.stream.read_u8().await.ok()?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.ok()?;
        Some((header, body))
    }
}
