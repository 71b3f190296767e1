//! The CONNECT of a client: who it is, and what of it reaches the engine.

use mqtt5::{MqttError, PropertyId, packet::connect::ConnectPacket, types::ReasonCode};
use sha2::{Digest, Sha256};
use types::{AppId, Credential, Secret};

use crate::{
    authenticator::{Gate, Refusal},
    scope::Tenant,
    packet::{self, ControlPacket},
};

/// The most bytes that a client's own name for its session may have.
const CLIENT_ID_BYTES_MAX: usize = 256;

/// The longest silence that a client may ask for; also what one that asks for none gets.
const KEEP_ALIVE_SECONDS_MAX: u16 = 1200;

/// A CONNECT whose client is known.
pub(crate) struct Greeting {
    connect: ConnectPacket,
    /// Whose client it is.
    pub(crate) tenant: Tenant,
    /// What it showed.
    pub(crate) credential: Credential,
    /// Whether the client's keep-alive was shortened.
    shortened: bool,
}

impl Greeting {
    /// Checks who sent a CONNECT, and that nothing in it goes beyond what they may do.
    pub(crate) async fn check(mut connect: ConnectPacket, gate: &dyn Gate) -> Result<Self, ReasonCode> {
        if !matches!(connect.protocol_version, 4 | 5) {
            return Err(ReasonCode::UnsupportedProtocolVersion);
        }
        if connect.client_id.len() > CLIENT_ID_BYTES_MAX {
            return Err(ReasonCode::ClientIdentifierNotValid);
        }
        let (app_id, credential) = shown(&connect).ok_or(ReasonCode::BadUsernameOrPassword)?;
        let claims = gate.claims(&app_id, &credential).await.map_err(|refusal| match refusal {
            Refusal::Invalid => ReasonCode::BadUsernameOrPassword,
            Refusal::Unavailable => ReasonCode::ServerUnavailable,
        })?;
        let tenant = Tenant::new(app_id, &claims);
        if !tenant.may_connect() {
            return Err(ReasonCode::NotAuthorized);
        }
        check_will(&mut connect, &tenant)?;
        let shortened = !(1..=KEEP_ALIVE_SECONDS_MAX).contains(&connect.keep_alive);
        if shortened {
            connect.keep_alive = KEEP_ALIVE_SECONDS_MAX;
        }
        Ok(Self { connect, tenant, credential, shortened })
    }

    /// Which version of MQTT the client speaks.
    pub(crate) fn version(&self) -> u8 {
        self.connect.protocol_version
    }

    /// The session's name in the engine: no two credentials ever share one, whatever their clients are called.
    ///
    /// Nor do two sets of rights: the engine refuses a session to any user but the one who began it, and the rights are
    /// part of the user. So whoever has other rights than before begins anew.
    ///
    /// Empty when the client has no name for it; then the engine makes one up.
    pub(crate) fn session(&self, salt: &[u8]) -> String {
        if self.connect.client_id.is_empty() {
            return String::new();
        }
        let mut hash = Sha256::new();
        hash.update(salt);
        hash.update(Sha256::digest(self.credential.to_header()));
        hash.update(Sha256::digest(self.tenant.to_string()));
        hash.update(&self.connect.client_id);
        let name: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{name}", self.tenant.app_id)
    }

    /// What the engine is told: the tenant as the user, and the secret that says it comes from us.
    pub(crate) fn for_engine(&self, session: String, secret: &Secret) -> Result<ControlPacket, MqttError> {
        let mut connect = self.connect.clone();
        connect.client_id = session;
        connect.username = Some(self.tenant.to_string());
        connect.password = Some(secret.expose().as_bytes().to_vec());
        // Published late it could outlive the right to publish it.
        connect.will_properties = packet::without(&connect.will_properties, PropertyId::WillDelayInterval)?;
        ControlPacket::encode(&connect)
    }

    /// What the client is told: the engine's answer with our limits in place of the engine's.
    pub(crate) fn answer(&self, answer: ControlPacket, packet_bytes_max: u32) -> Result<ControlPacket, MqttError> {
        if self.version() < 5 {
            return Ok(answer);
        }
        let mut connack = answer.connack()?;
        if connack.reason_code != ReasonCode::Success {
            return Ok(answer);
        }
        connack.properties = packet::without(&connack.properties, PropertyId::MaximumPacketSize)?;
        connack.properties.set_maximum_packet_size(packet_bytes_max);
        if self.shortened {
            connack.properties.set_server_keep_alive(KEEP_ALIVE_SECONDS_MAX);
        }
        ControlPacket::encode(&connack)
    }
}

/// Whom the client claims to be, and its proof: an access key, or else a token.
fn shown(connect: &ConnectPacket) -> Option<(AppId, Credential)> {
    let app_id = connect.username.as_deref()?.parse().ok()?;
    let password = std::str::from_utf8(connect.password.as_deref()?).ok()?;
    if password.is_empty() {
        return None;
    }
    let token = || Credential::Token(Secret::new(password));
    Some((app_id, password.parse().map_or_else(|_| token(), Credential::Key)))
}

/// A will is a publication: allowed where one is. MQTT 3.1.1 cannot be told that nothing is retained.
fn check_will(connect: &mut ConnectPacket, tenant: &Tenant) -> Result<(), ReasonCode> {
    let Some(will) = &mut connect.will else { return Ok(()) };
    if !tenant.may_publish(&will.topic) {
        return Err(ReasonCode::NotAuthorized);
    }
    if will.retain && connect.protocol_version >= 5 {
        return Err(ReasonCode::RetainNotSupported);
    }
    will.retain = false;
    Ok(())
}
