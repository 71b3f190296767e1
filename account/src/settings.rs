//! The settings of the account service and their defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, UserId};

use crate::{
    Error, Result,
    entity::{application::eui::EuiBlock, gateway::routers::RouterSettings},
    oauth::client::settings::ClientSettings,
    provider::settings::{ProviderName, ProviderSettings},
    public_url::PublicUrl,
    user::{mail::MailSettings, rate_limit::RateLimits},
};

types::settings! {
    /// The settings of the account service.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Settings {
        /// The issuer id in tokens and access keys. Changing it invalidates all of them.
        pub issuer: String = "airlock-account".to_owned(),
        /// The URL at which people reach the service, such as `https://account.example.com`. Defaults to the listen
        /// address.
        ///
        /// Links in mails, redirects and metadata start with it. With https, the session cookie is sent over TLS only.
        #[schemars(with = "Option<String>")]
        pub public_url: Option<PublicUrl>,
        /// The number of reverse proxies in front of the service, each of which appends to `X-Forwarded-For`.
        ///
        /// Rate limits use the address that the outermost proxy saw. If the number is too high, clients can forge their
        /// address.
        pub proxies: u8,
        /// Rate limits of logins, registrations and mails.
        #[serde(rename = "limits")]
        pub rate_limits: RateLimits,
        /// The mail server. Without it, mails are written to the log.
        pub mail: Option<MailSettings>,
        /// The block of EUIs for applications: its first EUI and the number of fixed bits.
        ///
        /// The default is locally administered. If the IEEE assigned a block to you, set it here.
        #[schemars(with = "String")]
        pub eui_block: EuiBlock,
        /// True if first-party clients may log in with a user's name and password.
        pub password_grant: bool = true,
        /// Number of passwords that are checked in parallel; each check takes 19 MiB. Zero means one less than the
        /// number of cores.
        pub password_checks_max: usize,
        /// OAuth clients to create if they do not exist. Later changes here have no effect.
        ///
        /// The default is `airlock`, a public client, and `ttnctl` with the secret `ttnctl`, which is built into TTN
        /// v2's command line. Both are first-party clients and may request every scope.
        #[schemars(with = "BTreeMap<String, ClientSettings>", extend("writeOnly" = true))]
        pub clients: BTreeMap<ClientId, ClientSettings> = ClientSettings::defaults(),
        /// OpenID Connect providers at which users may log in, by a name that stands in addresses and in the audit log.
        #[schemars(with = "BTreeMap<String, ProviderSettings>")]
        pub login_providers: BTreeMap<ProviderName, ProviderSettings>,
        /// The ids of users who may list all users, as `airlock account users show` prints them. Names do not count,
        /// because anybody may register a name that is free. Where `airlock serve` has the console, `console.operators`
        /// count, too. While both are empty, it is the user who created the first account with the address that
        /// `airlock serve` printed.
        #[schemars(with = "Vec<String>")]
        #[serde(deserialize_with = "UserId::deserialize_list")]
        pub operators: Vec<UserId>,
        /// Routers for gateways. Gateways that name none use the first one.
        pub routers: Vec<RouterSettings>,
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.issuer.is_empty() || self.issuer.len() > 36 || !self.issuer.bytes().all(plain) {
            let must = "must have 1 to 36 lowercase letters, digits and dashes";
            return Err(Error::Setting { name: "account.issuer", must });
        }
        ProviderSettings::check_all(&self.login_providers)?;
        self.clients.values().try_for_each(ClientSettings::check)
    }
}
