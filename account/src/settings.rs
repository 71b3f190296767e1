//! The settings of the account service and their defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::limit::Limit;
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
    /// The address at which users reach the service, such as `https://account.example.com`; defaults to the address it
    /// listens on.
    ///
    /// Links in mails, redirects and metadata start with it. If it is https, session cookies are only sent over TLS.
    #[schemars(with = "Option<String>")]
    pub public_url: Option<PublicUrl>,
    /// Number of reverse proxies in front of the service that append to `X-Forwarded-For`.
    ///
    /// Rate limits use the client address that the outermost proxy saw. If the number is too high, clients can forge
    /// it.
    pub proxies: u8,
    /// Rate limits for logins, registrations and mails.
    pub limits: Limits,
    /// How to send mail. If unset, mails are logged instead.
    pub mail: Option<MailSettings>,
    /// The block from which applications get EUIs: its first EUI and the number of fixed bits.
    ///
    /// The default is locally administered. If the IEEE assigned you a block, set it here.
    #[schemars(with = "String")]
    pub eui_block: EuiBlock,
    /// Whether first-party clients may log in with a user's name and password.
    pub password_grant: bool,
    /// How many passwords are verified at once; each takes 19 MiB. Zero means one fewer than there are cores.
    pub password_checks_max: usize,
    /// OAuth clients to create if they do not exist yet. Later changes are made in the store.
    ///
    /// The default is `airlock`, which is public, and `ttnctl` with the secret `ttnctl`, which is built into TTN v2's
    /// command line. Both are first-party clients with every scope.
    #[schemars(with = "BTreeMap<String, ClientSettings>", extend("writeOnly" = true))]
    pub clients: BTreeMap<ClientId, ClientSettings>,
    /// The routers that gateways can use; the first is the default.
    pub routers: Vec<RouterSettings>,
}

/// An OAuth client to create on the first start.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSettings {
    /// Its secret; a client without one is public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<Secret>,
    /// Whether it belongs to the operator, so that users may trust it with their password.
    #[serde(default)]
    pub first_party: bool,
    /// The general scopes that it may request.
    #[schemars(with = "Vec<String>")]
    pub scope: Vec<Scope>,
    /// Exact URIs to which it may redirect users with a code; only the port of `http://127.0.0.1/…` and
    /// `http://[::1]/…` is free.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Whether it is a v2 client that sends neither a PKCE challenge nor its redirect URI with the code.
    #[serde(default)]
    pub legacy: bool,
}

/// A router that gateways can be told to use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSettings {
    /// Its id.
    #[schemars(with = "String")]
    pub id: ComponentId,
    /// Its address for gRPC, such as `router.example.com:1901`.
    pub address: String,
    /// Its address for MQTT, such as `mqtts://router.example.com:8883`.
    pub mqtt_address: String,
}

/// How often strangers may try; beyond that they are told how long to wait.
///
/// A guesser runs out of tries for one user at once, and holds up that user only at the guesser's own address. What
/// many addresses may try together is bounded far above what people need, and those from which the user logged in
/// before are let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Passwords for one user from one address.
    pub login: Limit,
    /// Passwords for one user from all addresses from which the user never logged in.
    pub user: Limit,
    /// Passwords from one address for all users.
    pub address: Limit,
    /// New users from one address.
    pub registration: Limit,
    /// Mails to one user.
    pub mail: Limit,
    /// New names of one user.
    pub username: Limit,
}

impl Settings {
    /// Rejects invalid settings.
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
    /// Our own command line as a public client, and the client built into TTN v2's command line.
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
            limits: Limits::default(),
            mail: None,
            eui_block: EuiBlock::default(),
            password_grant: true,
            password_checks_max: 0,
            clients: clients.into_iter().flatten().collect(),
            routers: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            login: Limit::new(20, 60),
            user: Limit::new(1000, 1000),
            address: Limit::new(300, 600),
            registration: Limit::new(20, 20),
            mail: Limit::new(3, 4),
            username: Limit::new(3, 1),
        }
    }
}

