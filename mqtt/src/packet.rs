//! MQTT control packets: read whole, up to a limit, and decoded only where the broker needs their contents.

use std::io;

use bytes::Bytes;
use mqtt5::{
    FixedHeader, MqttError, PacketType, Properties, PropertyId,
    packet::{
        MqttPacket, connack::ConnAckPacket, connect::ConnectPacket, disconnect::DisconnectPacket,
        subscribe::SubscribePacket, unsubscribe::UnsubscribePacket,
    },
    types::ReasonCode,
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum memory to allocate for a packet before its bytes have arrived.
const BODY_CAPACITY_BYTES: usize = 4 * 1024;

/// A control packet: the first byte, and everything after the Remaining Length.
#[derive(Clone, Debug)]
pub(crate) struct ControlPacket {
    header: u8,
    body: Bytes,
}

/// Why a packet could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the packet is too large")]
    TooLarge,
    #[error("the packet is malformed")]
    Malformed(#[from] MqttError),
    #[error("the connection broke")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// The reason code of MQTT 5.
    pub(crate) fn reason(&self) -> ReasonCode {
        match self {
            Self::TooLarge => ReasonCode::PacketTooLarge,
            Self::Malformed(_) => ReasonCode::MalformedPacket,
            Self::Io(_) => ReasonCode::UnspecifiedError,
        }
    }
}

/// What becomes of a client's session when its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionFate {
    /// It is deleted.
    Ends,
    /// It lasts until it expires.
    Stays,
}

impl ControlPacket {
    /// Reads one packet with a body of at most `bytes_max`; returns nothing at the end of the stream.
    ///
    /// Allocates memory as bytes arrive, so that announcing a large packet costs nothing.
    pub(crate) async fn read(
        reader: &mut (impl AsyncRead + Unpin),
        bytes_max: usize,
    ) -> Result<Option<Self>, ReadError> {
        let header = match reader.read_u8().await {
            Ok(header) => header,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let length = read_length(reader).await?;
        if length > bytes_max {
            return Err(ReadError::TooLarge);
        }
        let mut body = Vec::with_capacity(length.min(BODY_CAPACITY_BYTES));
        reader.take(length as u64).read_to_end(&mut body).await?;
        if body.len() < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Some(Self { header, body: body.into() }))
    }

    /// Appends the packet as it is sent.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.header);
        let mut length = self.body.len();
        loop {
            // Seven bits at a time; the top bit means that another byte follows.
            let low = (length & 0x7f) as u8;
            length >>= 7;
            if length == 0 {
                bytes.push(low);
                break;
            }
            bytes.push(low | 0x80);
        }
        bytes.extend_from_slice(&self.body);
    }

    /// The packet's type, unless MQTT defines no such type.
    pub(crate) fn packet_type(&self) -> Option<PacketType> {
        PacketType::from_u8(self.header >> 4)
    }

    /// Whether a PUBLISH has its RETAIN flag set.
    pub(crate) fn is_retained(&self) -> bool {
        self.header & 1 != 0
    }

    /// The same PUBLISH without its RETAIN flag.
    pub(crate) fn without_retain(mut self) -> Self {
        self.header &= !1;
        self
    }

    pub(crate) fn connect(&self) -> Result<ConnectPacket, MqttError> {
        ConnectPacket::decode_body(&mut self.body.clone(), &self.fixed_header(PacketType::Connect))
    }

    /// Decodes a CONNACK of MQTT 5.
    pub(crate) fn connack(&self) -> Result<ConnAckPacket, MqttError> {
        ConnAckPacket::decode_body(&mut self.body.clone(), &self.fixed_header(PacketType::ConnAck))
    }

    pub(crate) fn subscribe(&self, version: u8) -> Result<SubscribePacket, MqttError> {
        let header = self.fixed_header(PacketType::Subscribe);
        SubscribePacket::decode_body_with_version(&mut self.body.clone(), &header, version)
    }

    pub(crate) fn unsubscribe(&self, version: u8) -> Result<UnsubscribePacket, MqttError> {
        let header = self.fixed_header(PacketType::Unsubscribe);
        UnsubscribePacket::decode_body_with_version(&mut self.body.clone(), &header, version)
    }

    pub(crate) fn encode(packet: &impl MqttPacket) -> Result<Self, MqttError> {
        let mut body = Vec::new();
        packet.encode_body(&mut body)?;
        Ok(Self { header: (u8::from(packet.packet_type()) << 4) | packet.flags(), body: body.into() })
    }

    /// A CONNACK that refuses the client, in the client's protocol version; only MQTT 5 has room for a text.
    pub(crate) fn refusal(version: u8, reason: ReasonCode, text: Option<&str>) -> Result<Self, MqttError> {
        if version < 5 {
            return Self::encode(&ConnAckPacket::new_v311(false, reason));
        }
        let mut packet = ConnAckPacket::new(false, reason);
        if let Some(text) = text {
            packet.properties.set_reason_string(text.to_owned());
        }
        Self::encode(&packet)
    }

    /// The server's DISCONNECT of MQTT 5.
    pub(crate) fn server_disconnect(reason: ReasonCode) -> Result<Self, MqttError> {
        Self::encode(&DisconnectPacket::new(reason))
    }

    /// A client's DISCONNECT, which discards its will. Only MQTT 5 can end its session with it.
    pub(crate) fn client_disconnect(version: u8, fate: SessionFate) -> Result<Self, MqttError> {
        if version < 5 {
            return Ok(Self { header: u8::from(PacketType::Disconnect) << 4, body: Bytes::new() });
        }
        let mut packet = DisconnectPacket::new(ReasonCode::Success);
        if fate == SessionFate::Ends {
            packet.properties.set_session_expiry_interval(0);
        }
        Self::encode(&packet)
    }

    fn fixed_header(&self, packet_type: PacketType) -> FixedHeader {
        FixedHeader::new(packet_type, self.header & 0x0f, u32::try_from(self.body.len()).unwrap_or(u32::MAX))
    }
}

/// A copy of the properties without `id`.
pub(crate) fn without(properties: &Properties, id: PropertyId) -> Result<Properties, MqttError> {
    let mut kept = Properties::new();
    for (other, value) in properties.iter().filter(|(other, _)| *other != id) {
        kept.add(other, value.clone())?;
    }
    Ok(kept)
}

/// Reads a Remaining Length: one to four bytes of seven bits each.
async fn read_length(reader: &mut (impl AsyncRead + Unpin)) -> Result<usize, ReadError> {
    let mut length = 0;
    for shift in [0, 7, 14, 21] {
        let byte = reader.read_u8().await?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(length);
        }
    }
    Err(MqttError::MalformedPacket("the length has more than four bytes".to_owned()).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn read(bytes: &[u8]) -> Result<Option<ControlPacket>, ReadError> {
        ControlPacket::read(&mut &bytes[..], 300).await
    }

    #[tokio::test]
    async fn reads_back_packets_with_every_size_of_remaining_length() {
        for length in [0, 1, 127, 128, 300] {
            let packet = ControlPacket { header: 0x30, body: vec![7; length].into() };
            let mut bytes = Vec::new();
            packet.append_to(&mut bytes);
            let again = read(&bytes).await.unwrap().unwrap();
            assert_eq!((again.header, again.body), (packet.header, packet.body));
        }
    }

    #[tokio::test]
    async fn refuses_packets_that_are_too_large_endless_or_truncated() {
        assert!(matches!(read(&[0x30, 0xad, 0x02]).await, Err(ReadError::TooLarge)));
        assert!(matches!(read(&[0x30, 0xff, 0xff, 0xff, 0xff, 0x01]).await, Err(ReadError::Malformed(_))));
        assert!(matches!(read(&[0x30, 0x02, 0x00]).await, Err(ReadError::Io(_))));
        assert!(matches!(read(&[]).await, Ok(None)));
    }

    #[test]
    fn refuses_in_the_protocol_version_of_the_client() {
        let code = |version| ControlPacket::refusal(version, ReasonCode::BadUsernameOrPassword, None).unwrap().body[1];
        assert_eq!((code(4), code(5)), (4, 0x86));
    }

    proptest! {
        #[test]
        fn decodes_any_body_without_panicking(body: Vec<u8>, version in 3..7_u8) {
            let packet = ControlPacket { header: 0x82, body: body.into() };
            let _ = (packet.connect(), packet.connack(), packet.subscribe(version), packet.unsubscribe(version));
        }
    }
}
