//! A client's CONNECT packet: checked, and rewritten for the engine.

use std::net::IpAddr;

use mqtt5::{MqttError, PropertyId, packet::connect::ConnectPacket, types::ReasonCode};
use server::rate_limit::RateLimitExceeded;
use sha2::{Digest, Sha256};
use types::{AppId, Credential, Secret};

use crate::{
    Authenticator, Refusal,
    connect_limits::ConnectLimits,
    packet::{self, ControlPacket},
    permissions::Permissions,
};

/// Maximum length of a client identifier, in bytes.
const CLIENT_ID_BYTES_MAX: usize = 256;

/// Maximum keep-alive interval; clients that ask for none get this one.
const KEEP_ALIVE_SECONDS_MAX: u16 = 1200;

/// The CONNECT packet of an authenticated client.
pub(crate) struct Connect {
    packet: ConnectPacket,
    pub(crate) permissions: Permissions,
    pub(crate) credential: Credential,
    /// Whether the client gets a shorter keep-alive than it asked for.
    is_keep_alive_shortened: bool,
}

/// Why a CONNECT is refused.
#[derive(Debug)]
pub(crate) struct ConnectError {
    pub(crate) reason: ReasonCode,
    /// What the client should do, where the reason alone does not say it.
    pub(crate) text: Option<String>,
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
    ) -> Result<Self, ConnectError> {
        if !matches!(packet.protocol_version, 4 | 5) {
            return Err(ReasonCode::UnsupportedProtocolVersion.into());
        }
        if packet.client_id.len() > CLIENT_ID_BYTES_MAX {
            return Err(ReasonCode::ClientIdentifierNotValid.into());
        }
        limits.count_address(peer)?;
        let (app_id, credential) = take_credentials(&mut packet).ok_or(ReasonCode::BadUsernameOrPassword)?;
        limits.count_credential(&app_id, &credential)?;
        let claims = authenticator.authenticate(&app_id, &credential).await.map_err(|refusal| match refusal {
            Refusal::Invalid => ReasonCode::BadUsernameOrPassword.into(),
            Refusal::Unavailable(text) => ConnectError { reason: ReasonCode::ServerUnavailable, text: Some(text) },
        })?;
        let permissions = Permissions::new(app_id, &claims);
        if !permissions.may_connect() {
            return Err(ReasonCode::NotAuthorized.into());
        }
        check_will(&mut packet, &permissions)?;
        let is_keep_alive_shortened = !(1..=KEEP_ALIVE_SECONDS_MAX).contains(&packet.keep_alive);
        if is_keep_alive_shortened {
            packet.keep_alive = KEEP_ALIVE_SECONDS_MAX;
        }
        Ok(Self { packet, permissions, credential, is_keep_alive_shortened })
    }

    /// The protocol level: 4 for MQTT 3.1.1, 5 for MQTT 5.
    pub(crate) fn version(&self) -> u8 {
        self.packet.protocol_version
    }

    /// The client identifier at the engine. It differs for each credential and each set of rights, so nobody can
    /// resume or take over a session of others, whatever client identifier they choose.
    ///
    /// The rights are included because the engine does not resume a session under another username, and the user
    /// name names the rights. Empty when the client sent no identifier: then the engine assigns one.
    pub(crate) fn session_id(&self, salt: &[u8]) -> String {
        if self.packet.client_id.is_empty() {
            return String::new();
        }
        let mut hash = Sha256::new();
        hash.update(salt);
        hash.update(Sha256::digest(self.credential.to_header()));
        hash.update(Sha256::digest(self.permissions.to_string()));
        hash.update(&self.packet.client_id);
        let id: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{id}", self.permissions.app_id)
    }

    /// The CONNECT for the engine: with the permissions as the username, and the engine's secret as the password.
    pub(crate) fn for_engine(&self, session_id: String, secret: &Secret) -> Result<ControlPacket, MqttError> {
        let mut packet = self.packet.clone();
        packet.client_id = session_id;
        packet.username = Some(self.permissions.to_string());
        packet.password = Some(secret.expose().as_bytes().to_vec());
        // A delayed will could be published after the right to publish it was revoked.
        packet.will_properties = packet::without(&packet.will_properties, PropertyId::WillDelayInterval)?;
        ControlPacket::encode(&packet)
    }

    /// The CONNACK for the client: the engine's, with our limits in place of the engine's.
    pub(crate) fn connack(&self, packet: ControlPacket, packet_bytes_max: u32) -> Result<ControlPacket, MqttError> {
        if self.version() < 5 {
            return Ok(packet);
        }
        let mut connack = packet.connack()?;
        if connack.reason_code != ReasonCode::Success {
            return Ok(packet);
        }
        connack.properties = packet::without(&connack.properties, PropertyId::MaximumPacketSize)?;
        connack.properties.set_maximum_packet_size(packet_bytes_max);
        if self.is_keep_alive_shortened {
            connack.properties.set_server_keep_alive(KEEP_ALIVE_SECONDS_MAX);
        }
        ControlPacket::encode(&connack)
    }
}

/// Takes the application id from the username, and an access key or else a token from the password.
fn take_credentials(packet: &mut ConnectPacket) -> Option<(AppId, Credential)> {
    let app_id = packet.username.take()?.parse().ok()?;
    let password = Secret::new(String::from_utf8(packet.password.take()?).ok()?);
    if password.expose().is_empty() {
        return None;
    }
    Some((app_id, Credential::from_password(password.expose()).ok()?))
}

/// Allows a will only where the client may publish. It is never retained, which MQTT 3.1.1 cannot tell the client.
fn check_will(packet: &mut ConnectPacket, permissions: &Permissions) -> Result<(), ReasonCode> {
    let Some(will) = &mut packet.will else { return Ok(()) };
    if !permissions.may_publish(&will.topic) {
        return Err(ReasonCode::NotAuthorized);
    }
    if will.retain && packet.protocol_version >= 5 {
        return Err(ReasonCode::RetainNotSupported);
    }
    will.retain = false;
    Ok(())
}
