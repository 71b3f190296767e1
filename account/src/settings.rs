//! The settings of the account service and their defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Secret};

use crate::{
    Error, Result,
    application::eui::EuiBlock,
    gateway::RouterSettings,
    mail::MailSettings,
    oauth::{check_own_uri, check_scope},
    public_url::PublicUrl,
    rate_limit::Limits,
};

/// The settings of the account service.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The id that tokens and access keys name as their issuer; changing it makes all of them worthless.
    pub issuer: String,
    /// Where people reach the service, such as `https://account.example.com`; the address it listens on unless set.
    ///
    /// Links in mails, redirects and metadata begin with it, and with https the session cookie is sent over TLS only.
    #[schemars(with = "Option<String>")]
    pub public_url: Option<PublicUrl>,
    /// How many reverse proxies stand before the service, each of which adds to `X-Forwarded-For`.
    ///
    /// Limits go by the address that the outermost of them saw; with too high a number clients choose their own.
    pub proxies: u8,
    /// How often strangers may try.
    pub limits: Limits,
    /// How mail is sent; without it the log says what would be sent.
    pub mail: Option<MailSettings>,
    /// The block from which applications are given EUIs: the first EUI of it and how many bits are fixed.
    ///
    /// The default is locally administered. Set it to the block that the IEEE assigned to you if you have one.
    #[schemars(with = "String")]
    pub eui_block: EuiBlock,
    /// Whether clients of the first party may log in with a user's name and password.
    pub password_grant: bool,
    /// How many passwords are checked at once; each takes 19 MiB. Zero is one fewer than there are cores.
    pub password_checks_max: usize,
    /// OAuth clients to create when they do not exist yet; afterwards the store has the say.
    ///
    /// By default `airlock`, which is public, and `ttnctl` with the secret `ttnctl`, which TTN v2's command line has
    /// built in. Both belong to the first party and may ask for every scope.
    #[schemars(with = "BTreeMap<String, ClientSettings>", extend("writeOnly" = true))]
    pub clients: BTreeMap<ClientId, ClientSettings>,
    /// The routers that gateways are told of; the first is for those that name none.
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
    /// The general scopes that it may ask for.
    #[schemars(with = "Vec<String>")]
    pub scope: Vec<Scope>,
    /// Where it may have users sent with a code, letter for letter; only the port of `http://127.0.0.1/…`
    /// and `http://[::1]/…` is free.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Whether it is as old as v2 and sends neither a challenge nor, with the code, its redirect URI.
    #[serde(default)]
    pub legacy: bool,
}

impl Settings {
    /// Refuses what no service can run with.
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
    /// Our own command line as a public client, and the one that TTN v2's command line has built in.
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
