//! The OAuth clients that the operator configures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{ClientId, Scope, Secret};

use super::rules::{check_own_uri, check_scope};
use crate::{Error, Result};

/// An OAuth client to create on the first start.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientSettings {
    /// Its secret. A client without one is public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub secret: Option<Secret>,
    /// True if it is a first-party client, which may ask users for their password.
    #[serde(default)]
    pub first_party: bool,
    /// The general scopes that it may request.
    #[schemars(with = "Vec<String>")]
    pub scope: Vec<Scope>,
    /// Its redirect URIs, which must match exactly, except for the port of `http://127.0.0.1/…` and `http://[::1]/…`.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// True if it is a v2 client, which sends neither a code challenge nor a redirect URI with the code.
    #[serde(default)]
    pub legacy: bool,
}

impl ClientSettings {
    /// Our own command line as a public client, and TTN v2's command line.
    pub(crate) fn defaults() -> BTreeMap<ClientId, Self> {
        let scope = [Scope::Profile, Scope::Apps, Scope::Gateways, Scope::Components, Scope::Clients].to_vec();
        let client = |id: &str, secret: Option<&str>, redirect_uris: &[&str]| {
            let redirect_uris = redirect_uris.iter().map(|uri| (*uri).to_owned()).collect();
            let secret = secret.map(Secret::new);
            let (first_party, legacy) = (true, secret.is_some());
            let scope = scope.clone();
            Some((id.parse().ok()?, Self { secret, first_party, scope, redirect_uris, legacy }))
        };
        let clients = [
            client("airlock", None, &["http://127.0.0.1/oauth/callback", "/oauth/callback/airlock"]),
            client("ttnctl", Some("ttnctl"), &["/oauth/callback/ttnctl"]),
        ];
        clients.into_iter().flatten().collect()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if check_scope(&self.scope).is_err() {
            let must = "must name some of profile, apps, gateways, components and clients";
            return Err(Error::Setting { name: "account.clients.<id>.scope", must });
        }
        if self.redirect_uris.iter().any(|uri| check_own_uri(uri).is_err()) {
            let must = "must be an address such as https://example.com/callback or app://callback, without a \
                        fragment and with http only on localhost, or a path of this site";
            return Err(Error::Setting { name: "account.clients.<id>.redirect_uris", must });
        }
        Ok(())
    }
}
