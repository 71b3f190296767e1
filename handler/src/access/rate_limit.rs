//! Limits how often each client calls the handler, and how often an application's resources are called.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::rate_limit::RateLimit;
use sha2::{Digest, Sha256};
use store::Store;
use types::{AppId, Claims};

use crate::{Error, metrics};

/// How often the handler may be called. Beyond that, clients are told how long to wait. Traffic from devices does not
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// By one user, or with one application's access keys.
    pub client: RateLimit,
    /// For one application, by all clients together.
    pub application: RateLimit,
}

impl Default for RateLimits {
    /// 5000 an hour, as v2 documents it; all of them may come at once.
    fn default() -> Self {
        let limit = RateLimit::new(5000, 5000);
        Self { client: limit, application: limit }
    }
}

/// Counts calls in the store, which all instances share.
#[derive(Clone)]
pub struct RateLimiter {
    store: Arc<dyn Store>,
    limits: RateLimits,
}

impl RateLimiter {
    /// Counts in `store`, and allows as many calls as `limits` say.
    pub fn new(store: Arc<dyn Store>, limits: RateLimits) -> Self {
        Self { store, limits }
    }

    /// Counts a call by this client; [`Error::RateLimited`] if it calls too often.
    pub(crate) async fn count_client(&self, claims: &Claims) -> Result<(), Error> {
        self.count("client", self.limits.client, &client_id(claims), &claims.sub).await
    }

    /// Counts a call for this application; [`Error::RateLimited`] if there are too many.
    pub(crate) async fn count_application(&self, app_id: &AppId) -> Result<(), Error> {
        self.count("application", self.limits.application, app_id.as_str(), app_id.as_str()).await
    }

    async fn count(&self, policy: &'static str, limit: RateLimit, id: &str, name: &str) -> Result<(), Error> {
        let owner = format!("handler:{policy}:{id}");
        let Some(exceeded) = limit.take(policy, &owner, self.store.as_ref()).await? else { return Ok(()) };
        metrics::rate_limited(policy);
        Err(Error::RateLimited { exceeded, name: name.to_owned() })
    }
}

/// Identifies a client in keys of the store, which not every text may be part of.
fn client_id(claims: &Claims) -> String {
    let Claims { iss, kind, sub, .. } = claims;
    // None of the three contains a line feed.
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{iss}\n{kind}\n{sub}")))
}
