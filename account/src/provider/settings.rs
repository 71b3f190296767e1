//! The settings of OpenID Connect providers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::is_line;

use crate::{Error, Result};

/// Maximum length of a client id, in characters.
const CLIENT_ID_MAX: usize = 255;

pub(super) const WRONG_ISSUER: Error = Error::Setting {
    name: "account.login_providers.<name>.issuer",
    must: "must be the provider's issuer, such as https://login.example.com, with http only on localhost",
};

/// Trust in the system's certificate authorities is all that can be missing for an address that is right.
pub(super) const NO_AUTHORITIES: Error = Error::Setting {
    name: "account.login_providers.<name>.issuer",
    must: "needs certificate authorities, and this system has none: install them, or name their file in SSL_CERT_FILE",
};

/// The name of a provider in the settings, in addresses and in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderName(String);

/// An OpenID Connect provider at which users may log in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderSettings {
    /// Name for users: the login page has a button `Log in with <title>`.
    pub title: String,
    /// Its issuer, exactly as the provider writes it, such as `https://login.example.com/realms/main`.
    pub issuer: String,
    /// The id of the client that the provider has for this account service. Its redirect URI there is
    /// `<account.public_url>/users/login/<name>/callback`.
    pub client_id: String,
    /// File with the client's secret. It is read again when it changes. A public client has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// The scopes to ask for, separated by spaces.
    #[serde(default = "default_scope")]
    pub scope: String,
    /// True if somebody who logs in for the first time gets an account. Otherwise only users can log in who have
    /// linked their login at the provider in their profile.
    #[serde(default)]
    pub create_users: bool,
}

impl ProviderSettings {
    pub(crate) fn check_all(all: &BTreeMap<ProviderName, Self>) -> Result<()> {
        let issuers: BTreeSet<_> = all.values().map(|provider| &provider.issuer).collect();
        if issuers.len() < all.len() {
            let must = "must not be that of another provider";
            return Err(Error::Setting { name: "account.login_providers.<name>.issuer", must });
        }
        all.values().try_for_each(Self::check)
    }

    fn check(&self) -> Result<()> {
        let refused = |name, must| Err(Error::Setting { name, must });
        if !is_line(&self.title, 1..=40) {
            return refused("account.login_providers.<name>.title", "must have 1 to 40 characters in one line");
        }
        if !is_line(&self.client_id, 1..=CLIENT_ID_MAX) {
            return refused("account.login_providers.<name>.client_id", "must be the client's id at the provider");
        }
        if !self.scope.split(' ').any(|scope| scope == "openid") {
            return refused("account.login_providers.<name>.scope", "must have openid as one of its words");
        }
        Ok(())
    }
}

fn default_scope() -> String {
    "openid profile email".to_owned()
}

impl FromStr for ProviderName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if (1..=36).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            let must = "must have 1 to 36 lowercase letters, digits, dashes and underscores";
            Err(Error::Invalid { what: "name of the login provider", must })
        }
    }
}

types::serde_as_text!(ProviderName);

impl fmt::Display for ProviderName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut ProviderSettings)) -> Result<()> {
        let mut settings = ProviderSettings {
            title: "Example".to_owned(),
            issuer: "https://login.example.com".to_owned(),
            client_id: "airlock".to_owned(),
            client_secret_file: None,
            scope: default_scope(),
            create_users: false,
        };
        change(&mut settings);
        ProviderSettings::check_all(&BTreeMap::from([("example".parse().unwrap(), settings)]))
    }

    #[test]
    fn refuses_settings_that_cannot_work() {
        assert!(check(|_| {}).is_ok());
        assert!(check(|settings| settings.title.clear()).is_err());
        assert!(check(|settings| settings.title.push('\n')).is_err());
        assert!(check(|settings| settings.client_id.clear()).is_err());
        assert!(check(|settings| "profile email".clone_into(&mut settings.scope)).is_err());
    }

    #[test]
    fn a_name_can_stand_in_an_address() {
        for name in ["a", "google", "my-company_2"] {
            assert_eq!(name.parse::<ProviderName>().unwrap().to_string(), name);
        }
        for name in ["", "Google", "a/b", "a.b", "é", &"a".repeat(37)] {
            assert!(name.parse::<ProviderName>().is_err(), "{name}");
        }
    }
}
