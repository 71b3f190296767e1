//! The settings of the account service and their defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::rate_limit::RateLimit;
use types::{ClientId, ComponentId, Scope, Secret};

use crate::{
    Error, Result,
    application::eui::EuiBlock,
    mail::MailSettings,
    oauth::client_rules::{check_own_uri, check_scope},
    public_url::PublicUrl,
};

/// The settings of the account service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The issuer id in tokens and access keys. Changing it invalidates all of them.
    pub issuer: String,
    /// The URL at which people reach the service, such as `https://account.example.com`. Defaults to the listen address.
    ///
    /// Links in mails, redirects and metadata start with it. With https, the session cookie is sent over TLS only.
    #[schemars(with = "Option<String>")]
    pub public_url: Option<PublicUrl>,
    /// The number of reverse proxies in front of the service, each of which appends to `X-Forwarded-For`.
    ///
    /// Rate limits use the address that the outermost proxy saw. If the number is too high, clients can forge their address.
    pub proxies: u8,
    /// Rate limits of logins, registrations and mails.
    #[serde(rename = "limits")]
    pub rate_limits: RateLimits,
    /// How mail is sent. Without it, mails are written to the log.
    pub mail: Option<MailSettings>,
    /// The block of EUIs for applications: its first EUI and the number of fixed bits.
    ///
    /// The default is locally administered. If the IEEE assigned a block to you, set it here.
    #[schemars(with = "String")]
    pub eui_block: EuiBlock,
    /// Whether first-party clients may log in with a user's name and password.
    pub password_grant: bool,
    /// How many passwords are checked in parallel; each check takes 19 MiB. Zero means one less than the number of cores.
    pub password_checks_max: usize,
    /// OAuth clients to create if they do not exist. Later changes here have no effect.
    ///
    /// The default is `airlock`, a public client, and `ttnctl` with the secret `ttnctl`, which is built into TTN v2's command
    /// line. Both are first-party clients and may request every scope.
    #[schemars(with = "BTreeMap<String, ClientSettings>", extend("writeOnly" = true))]
    pub clients: BTreeMap<ClientId, ClientSettings>,
    /// Routers for gateways. Gateways that name none use the first one.
    pub routers: Vec<RouterSettings>,
}

/// An OAuth client to create on the first start.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSettings {
    /// Its secret. A client without one is public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<Secret>,
    /// Whether it is a first-party client, which may ask users for their password.
    #[serde(default)]
    pub first_party: bool,
    /// The general scopes that it may request.
    #[schemars(with = "Vec<String>")]
    pub scope: Vec<Scope>,
    /// Its redirect URIs, which must match exactly, except for the port of `http://127.0.0.1/…` and `http://[::1]/…`.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Whether it is a v2 client, which sends neither a code challenge nor a redirect URI with the code.
    #[serde(default)]
    pub legacy: bool,
}

/// A router that gateways can use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSettings {
    /// Its component id.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// Its gRPC address, such as `router.example.com:1901`.
    pub address: String,
    /// Its MQTT address, such as `mqtts://router.example.com:8883`.
    pub mqtt_address: String,
}

/// Rate limits. Clients beyond them are told how long to wait.
///
/// Somebody who guesses a user's password soon reaches the limit for that user and address, which does not affect the user
/// elsewhere. The limit for all addresses together is far above what people need, and does not apply to addresses from
/// which the user logged in before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Password attempts for one user from one address.
    pub login: RateLimit,
    /// Password attempts for one user from all addresses from which the user never logged in.
    pub user: RateLimit,
    /// Password attempts from one address for all users.
    pub address: RateLimit,
    /// Registrations from one address.
    pub registration: RateLimit,
    /// Mails to one user.
    pub mail: RateLimit,
    /// Changes of one user's name.
    pub username: RateLimit,
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.issuer.is_empty() || self.issuer.len() > 36 || !self.issuer.bytes().all(plain) {
            let must = "must have 1 to 36 lowercase letters, digits and dashes";
            return Err(Error::Setting { name: "account.issuer", must });
        }
        if self.clients.values().any(|client| check_scope(&client.scope).is_err()) {
            let must = "must name some of profile, apps, gateways, components and clients";
            return Err(Error::Setting { name: "account.clients.<id>.scope", must });
        }
        if self.clients.values().flat_map(|client| &client.redirect_uris).any(|uri| check_own_uri(uri).is_err()) {
            let must = "must be an address such as https://example.com/callback or app://callback, without a \
                        fragment and with http only on localhost, or a path of this site";
            return Err(Error::Setting { name: "account.clients.<id>.redirect_uris", must });
        }
        Ok(())
    }
}

impl Default for Settings {
    /// Our own command line as a public client, and TTN v2's command line.
    fn default() -> Self {
        let scope = [Scope::Profile, Scope::Apps, Scope::Gateways, Scope::Components, Scope::Clients].to_vec();
        let client = |id: &str, secret: Option<&str>, redirect_uris: &[&str]| {
            let redirect_uris = redirect_uris.iter().map(|uri| (*uri).to_owned()).collect();
            let secret = secret.map(Secret::new);
            let (first_party, legacy) = (true, secret.is_some());
            let scope = scope.clone();
            Some((id.parse().ok()?, ClientSettings { secret, first_party, scope, redirect_uris, legacy }))
        };
        let clients = [
            client("airlock", None, &["http://127.0.0.1/oauth/callback", "/oauth/callback/airlock"]),
            client("ttnctl", Some("ttnctl"), &["/oauth/callback/ttnctl"]),
        ];
        Self {
            issuer: "airlock-account".to_owned(),
            public_url: None,
            proxies: 0,
            rate_limits: RateLimits::default(),
            mail: None,
            eui_block: EuiBlock::default(),
            password_grant: true,
            password_checks_max: 0,
            clients: clients.into_iter().flatten().collect(),
            routers: Vec::new(),
        }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            login: RateLimit::new(20, 60),
            user: RateLimit::new(1000, 1000),
            address: RateLimit::new(300, 600),
            registration: RateLimit::new(20, 20),
            mail: RateLimit::new(3, 4),
            username: RateLimit::new(3, 1),
        }
    }
}
