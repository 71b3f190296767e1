//! How often the handler may be called: for each client, and for each application whoever calls.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::limit::Limit;
use sha2::{Digest, Sha256};
use store::{Key, Store, Tag, Token};
use types::{AppId, Claims};

use crate::{Error, metrics};

/// How often the handler may be called; beyond that clients are told how long to wait. What devices send does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Calls {
    /// By one user or one application's access keys.
    pub client: Limit,
    /// For one application, by everybody who may.
    pub application: Limit,
}

impl Default for Calls {
    /// As v2 documents it, 5000 an hour; as many may come at once.
    fn default() -> Self {
        let limit = Limit::new(5000, 5000);
        Self { client: limit, application: limit }
    }
}

/// Counts calls in the store, where all instances count together.
#[derive(Clone)]
pub struct Throttle {
    store: Arc<dyn Store>,
    calls: Calls,
}

impl Throttle {
    /// Counts in `store`, and lets pass as many as `calls` say.
    pub fn new(store: Arc<dyn Store>, calls: Calls) -> Self {
        Self { store, calls }
    }

    /// Counts a call by this client; [`Error::Throttled`] when it called too often.
    pub async fn client(&self, claims: &Claims) -> Result<(), Error> {
        self.take("client", self.calls.client, &client_id(claims), &claims.sub).await
    }

    /// Counts a call for this application; [`Error::Throttled`] when there were too many.
    pub async fn application(&self, app_id: &AppId) -> Result<(), Error> {
        self.take("application", self.calls.application, app_id.as_str(), app_id.as_str()).await
    }

    async fn take(&self, policy: &'static str, limit: Limit, id: &str, name: &str) -> Result<(), Error> {
        let key = Key::new(&Tag::named("l", &format!("handler:{policy}:{id}"))?, "")?;
        match self.store.take_token(&key, limit.rate()).await? {
            Token::Taken { .. } => Ok(()),
            Token::Wait(wait) => {
                metrics::throttled(policy);
                Err(Error::Throttled { exceeded: limit.exceeded(policy, wait), name: name.to_owned() })
            }
        }
    }
}

/// Stands for a client in keys, which not every text may be part of.
fn client_id(claims: &Claims) -> String {
    let Claims { iss, kind, sub, .. } = claims;
    // A line end is in none of the three.
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{iss}\n{kind}\n{sub}")))
}
