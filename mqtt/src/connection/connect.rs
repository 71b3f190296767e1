//! A client's CONNECT packet: what it asks for, checked against what it may have.

use std::{net::IpAddr, sync::Arc, time::Duration};

use mqtt5_protocol::{
    MqttError, Properties, PropertyId, PropertyValue, QoS, packet::connect::ConnectPacket, types::ReasonCode,
};
use server::rate_limit::RateLimitExceeded;
use sha2::{Digest, Sha256};
use types::{AppId, Credential, Secret};

use crate::{
    Authenticator, Refusal,
    access::permissions::Permissions,
    connection::connect_limits::ConnectLimits,
    packet::{
        ControlPacket, forwarded,
        limits::{CLIENT_PACKET_BYTES_MAX, PROPERTIES_BYTES_MAX, RECEIVE_MAX, TOPIC_ALIASES_MAX},
    },
    session::{
        SessionOwner, SessionRequest,
        message::{DeliveryQos, Message},
    },
};

/// Maximum length of a client identifier, in bytes.
pub(crate) const CLIENT_ID_BYTES_MAX: usize = 256;

/// Maximum keep-alive interval; clients that ask for none get this one.
const KEEP_ALIVE_SECONDS_MAX: u16 = 1200;

/// Maximum number of messages that a client gets before it acknowledges one.
const WINDOW_MAX: u16 = 32;

/// The CONNECT packet of an authenticated client.
pub(crate) struct Connect {
    /// The protocol level: 3 for MQTT 3.1, 4 for MQTT 3.1.1, 5 for MQTT 5.
    pub(crate) version: u8,
    pub(crate) permissions: Permissions,
    pub(crate) credential: Credential,
    /// Message published when the connection breaks.
    pub(crate) will: Option<Will>,
    /// Seconds between packets of the client.
    pub(crate) keep_alive: u16,
    /// Number of messages that the client gets before it acknowledges one.
    pub(crate) window: usize,
    /// Size of the largest packet that the client takes, in bytes.
    pub(crate) packet_bytes_max: usize,
    client_id: String,
    clean: bool,
    /// Time that the session is to outlive the connection.
    expiry: Duration,
    /// Properties of the CONNACK.
    response: Properties,
}

/// A client's will, allowed as any of its publications.
pub(crate) struct Will {
    pub(crate) message: Message,
    /// True if the client wants it delayed, so that it may reconnect before.
    pub(crate) is_delayed: bool,
}

/// Refusal of a CONNECT.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub(crate) reason: ReasonCode,
    /// Advice for the client, where the reason alone does not say it.
    pub(crate) text: Option<String>,
}

impl ConnectError {
    /// Something that its application or owner may have is used up, as `what` says.
    pub(crate) fn quota(what: &impl ToString) -> Self {
        Self { reason: ReasonCode::QuotaExceeded, text: Some(what.to_string()) }
    }
}

impl From<ReasonCode> for ConnectError {
    fn from(reason: ReasonCode) -> Self {
        Self { reason, text: None }
    }
}

impl From<RateLimitExceeded> for ConnectError {
    fn from(exceeded: RateLimitExceeded) -> Self {
        let RateLimitExceeded { policy, wait_s, .. } = exceeded;
        let text = format!("too many connections by one {policy}: wait {wait_s} s before the next");
        Self { reason: ReasonCode::ConnectionRateExceeded, text: Some(text) }
    }
}

impl Connect {
    /// Authenticates the client, and refuses a CONNECT that asks for more than its rights allow.
    pub(crate) async fn check(
        mut packet: ConnectPacket,
        peer: IpAddr,
        limits: &ConnectLimits,
        authenticator: &dyn Authenticator,
        expiry_max: Duration,
    ) -> Result<Self, ConnectError> {
        if !matches!(packet.protocol_version, 3..=5) {
            return Err(ReasonCode::UnsupportedProtocolVersion.into());
        }
        if packet.client_id.len() > CLIENT_ID_BYTES_MAX || (packet.client_id.is_empty() && needs_client_id(&packet)) {
            return Err(ReasonCode::ClientIdentifierNotValid.into());
        }
        if [&packet.properties, &packet.will_properties].iter().any(|it| it.encoded_len() > PROPERTIES_BYTES_MAX) {
            return Err(ReasonCode::PacketTooLarge.into());
        }
        if packet.properties.contains(PropertyId::AuthenticationMethod) {
            return Err(ReasonCode::BadAuthenticationMethod.into());
        }
        limits.count_address(peer)?;
        let (app_id, credential) = take_credentials(&mut packet).ok_or(ReasonCode::BadUsernameOrPassword)?;
        limits.count_credential(&app_id, &credential)?;
        let claims =
            authenticator.authenticate(&app_id, &credential, Some(peer)).await.map_err(|refusal| match refusal {
                Refusal::Invalid => ReasonCode::BadUsernameOrPassword.into(),
                Refusal::Unavailable(text) => ConnectError { reason: ReasonCode::ServerUnavailable, text: Some(text) },
            })?;
        let permissions = Permissions::new(app_id, &claims);
        if !permissions.may_connect() {
            return Err(ReasonCode::NotAuthorized.into());
        }
        limits.forget_address(peer);
        let will = will(&mut packet, &permissions)?;
        Ok(Self::new(packet, permissions, credential, will, expiry_max))
    }

    fn new(
        packet: ConnectPacket,
        permissions: Permissions,
        credential: Credential,
        will: Option<Will>,
        expiry_max: Duration,
    ) -> Self {
        let mut response = limits();
        let keep_alive = if packet.keep_alive == 0 { KEEP_ALIVE_SECONDS_MAX } else { packet.keep_alive };
        let keep_alive = keep_alive.min(KEEP_ALIVE_SECONDS_MAX);
        if keep_alive != packet.keep_alive {
            response.set_server_keep_alive(keep_alive);
        }
        let asked = Duration::from_secs(match packet.properties.get_session_expiry_interval() {
            Some(seconds) => seconds.into(),
            // Before MQTT 5, a session that is not clean has no end.
            None if packet.protocol_version < 5 && !packet.clean_start => u64::MAX,
            None => 0,
        });
        let expiry = asked.min(expiry_max);
        if expiry < asked {
            response.set_session_expiry_interval(u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX));
        }
        let packet_bytes_max = packet.properties.get_maximum_packet_size().unwrap_or(u32::MAX);
        Self {
            version: packet.protocol_version,
            permissions,
            credential,
            will,
            keep_alive,
            window: packet.properties.get_receive_maximum().unwrap_or(WINDOW_MAX).clamp(1, WINDOW_MAX).into(),
            packet_bytes_max: packet_bytes_max as usize,
            client_id: packet.client_id,
            clean: packet.clean_start,
            expiry,
            response,
        }
    }

    /// The session that the client asks for. An assigned client identifier is made of `salt` and `number`.
    ///
    /// The session's id differs for each credential and each set of rights, so nobody can resume or take over a session
    /// of others, whatever client identifier they choose.
    pub(crate) fn session_request(&mut self, salt: &[u8], number: u64) -> SessionRequest {
        if self.client_id.is_empty() {
            let hash = Sha256::new().chain_update(salt).chain_update(number.to_be_bytes());
            self.client_id = format!("airlock-{}", hex(&hash.finalize()));
            self.response.set_assigned_client_identifier(self.client_id.clone());
        }
        let name = hex(&Sha256::digest(self.credential.to_header())).into();
        let session_owner = SessionOwner { name, presented: Some((self.credential.clone(), self.permissions.clone())) };
        // Of a client that reads nothing, only the state of its own publications is kept, and only in memory.
        let may_be_stored = self.permissions.may_read();
        SessionRequest { id: self.session_id(), session_owner, clean: self.clean, expiry: self.expiry, may_be_stored }
    }

    fn session_id(&self) -> Arc<str> {
        let mut hash = Sha256::new();
        hash.update(Sha256::digest(self.credential.to_header()));
        hash.update(Sha256::digest(self.permissions.to_string()));
        hash.update(&self.client_id);
        hex(&hash.finalize()).into()
    }

    /// The client's own name for itself, or the assigned one.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The CONNACK that accepts the client.
    pub(crate) fn accept(&mut self, session_present: bool) -> Result<ControlPacket, MqttError> {
        let response = std::mem::take(&mut self.response);
        ControlPacket::connack(self.version, session_present, ReasonCode::Success, response)
    }
}

/// The broker's limits, for the CONNACK of MQTT 5.
fn limits() -> Properties {
    let mut properties = Properties::new();
    properties.set_receive_maximum(RECEIVE_MAX);
    properties.set_maximum_packet_size(CLIENT_PACKET_BYTES_MAX);
    properties.set_topic_alias_maximum(TOPIC_ALIASES_MAX);
    properties.set_retain_available(false);
    properties
}

/// Before MQTT 5, only a clean session can do without an identifier, and before MQTT 3.1.1 none can.
fn needs_client_id(packet: &ConnectPacket) -> bool {
    packet.protocol_version < 5 && !packet.clean_start
}

fn hex(hash: &[u8]) -> String {
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn take_credentials(packet: &mut ConnectPacket) -> Option<(AppId, Credential)> {
    let username = packet.username.take()?;
    let password = Secret::new(String::from_utf8(packet.password.take()?).ok()?);
    credentials(&username, password.expose())
}

/// The application id in a username, and the access key or else the token in a password.
pub(crate) fn credentials(username: &str, password: &str) -> Option<(AppId, Credential)> {
    let app_id = username.parse().ok()?;
    if password.is_empty() {
        return None;
    }
    Some((app_id, Credential::from_password(password).ok()?))
}

/// Allows a will only where the client may publish. It is never retained, which MQTT 3.1.1 cannot tell the client.
fn will(packet: &mut ConnectPacket, permissions: &Permissions) -> Result<Option<Will>, ReasonCode> {
    let Some(will) = packet.will.take() else { return Ok(None) };
    if !permissions.may_publish(&will.topic) {
        return Err(ReasonCode::NotAuthorized);
    }
    if will.retain && packet.protocol_version >= 5 {
        return Err(ReasonCode::RetainNotSupported);
    }
    let message = Message {
        topic: will.topic,
        payload: will.payload.into(),
        qos: if will.qos == QoS::AtMostOnce { DeliveryQos::AtMostOnce } else { DeliveryQos::AtLeastOnce },
        properties: forwarded(&packet.will_properties).map_err(|_| ReasonCode::MalformedPacket)?,
        publisher: None,
        _memory: None,
    };
    let delay = packet.will_properties.get(PropertyId::WillDelayInterval);
    let is_delayed = delay.is_some_and(|delay| *delay != PropertyValue::FourByteInteger(0));
    Ok(Some(Will { message, is_delayed }))
}
