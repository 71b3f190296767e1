//! A login at a provider that has begun: what the browser keeps until it comes back.
//!
//! It is in a sealed cookie, and not in the store, so that nobody can fill the store. `state` ties the answer to this
//! browser, and `nonce` the ID token to this login.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use types::{Secret, Timestamp, UserId};

use super::{Provider, settings::ProviderName};
use crate::{Account, Error, Result, seal::Sealed};

/// Maximum time that a login may take.
pub(crate) const FLOW_LIFETIME: Duration = Duration::from_secs(600);
/// Maximum length of the path to return to: browsers keep cookies of 4096 bytes only.
const NEXT_BYTES_MAX: usize = 2000;
/// The associated data of sealed cookies.
const AAD: &str = "login at a provider";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) provider: ProviderName,
    pub(super) state: String,
    pub(super) nonce: String,
    /// The secret of PKCE.
    pub(super) verifier: Secret,
    pub(super) purpose: Purpose,
    expires: Timestamp,
}

/// The purpose of a login.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To log in, and then to go to a path.
    LogIn {
        /// The path, which is not checked yet.
        next: String,
    },
    /// To link the login with a user.
    Link {
        /// Whoever is logged in.
        user_id: UserId,
    },
}

/// Where a browser must go, and what it must keep.
pub(crate) struct Departure {
    pub(crate) url: String,
    pub(crate) cookie: Secret,
}

impl Account {
    /// Begins a login at a provider.
    pub(super) async fn begin_flow(&self, provider: &Provider, purpose: Purpose) -> Result<Departure> {
        if matches!(&purpose, Purpose::LogIn { next } if next.len() > NEXT_BYTES_MAX) {
            let must = "must have at most 2000 bytes here: log in first, and then go back to the program";
            return Err(Error::Invalid { what: "next", must });
        }
        let random = || URL_SAFE_NO_PAD.encode(self.random.array::<32>());
        let flow = Flow {
            provider: provider.name.clone(),
            state: random(),
            nonce: random(),
            verifier: Secret::new(random()),
            purpose,
            expires: self.clock.now().plus(FLOW_LIFETIME),
        };
        let url = provider.authentication_url(&flow, &self.provider_redirect_uri(provider)).await;
        let url = url.map_err(|reason| provider.failed(reason))?;
        // Texts and times can always be written.
        let json = serde_json::to_vec(&flow).unwrap_or_default();
        let cookie = Secret::new(self.keys.seal(AAD, &json, self.random.as_ref())?.as_str());
        Ok(Departure { url, cookie })
    }

    /// The login in a cookie, if it was begun at this provider and is not too old.
    pub(super) fn open_flow(&self, provider: &Provider, cookie: &str) -> Option<Flow> {
        let opened = self.keys.open(AAD, AAD, &Sealed::new(cookie)).ok()?;
        let flow: Flow = serde_json::from_slice(&opened).ok()?;
        (flow.provider == provider.name && self.clock.now() < flow.expires).then_some(flow)
    }

    /// Where the provider sends browsers back to.
    pub(super) fn provider_redirect_uri(&self, provider: &Provider) -> String {
        format!("{}/users/login/{}/callback", self.public_url, provider.name)
    }
}
