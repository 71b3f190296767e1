//! Limits how often each client calls the handler, and how often an application's resources are called.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::rate_limit::RateLimit;
use sha2::{Digest, Sha256};
use store::Store;
use types::{AppId, Claims, RateLimitExceeded};

use crate::{Error, status::metrics};

/// Rates at which the handler may be called. Beyond that, clients are told how long to wait. Traffic from devices does
/// not count.
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

/// Whose calls are counted.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Client,
    Application,
}

/// Calls beyond a rate limit.
#[derive(Clone, Debug)]
pub(crate) struct TooMany {
    exceeded: RateLimitExceeded,
    name: String,
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
        one(self.count_several_of_client(claims, 1).await?)
    }

    /// Counts several calls by this client, as far as they are allowed. Returns how many are, and what refuses the
    /// others.
    pub(crate) async fn count_several_of_client(
        &self,
        claims: &Claims,
        wanted: u32,
    ) -> Result<(u32, Option<TooMany>), Error> {
        self.count(Policy::Client, &client_id(claims), &claims.sub, wanted).await
    }

    /// Counts a call for this application; [`Error::RateLimited`] if there are too many.
    pub(crate) async fn count_application(&self, app_id: &AppId) -> Result<(), Error> {
        one(self.count_several_of_application(app_id, 1).await?)
    }

    /// Counts several calls for this application in the same way.
    pub(crate) async fn count_several_of_application(
        &self,
        app_id: &AppId,
        wanted: u32,
    ) -> Result<(u32, Option<TooMany>), Error> {
        self.count(Policy::Application, app_id.as_str(), app_id.as_str(), wanted).await
    }

    async fn count(&self, policy: Policy, id: &str, name: &str, wanted: u32) -> Result<(u32, Option<TooMany>), Error> {
        let (policy, limit) = match policy {
            Policy::Client => ("client", self.limits.client),
            Policy::Application => ("application", self.limits.application),
        };
        let owner = format!("handler:{policy}:{id}");
        let (allowed, exceeded) = limit.take_several(policy, &owner, self.store.as_ref(), wanted).await?;
        let refuse = |exceeded| {
            metrics::rate_limited(policy, wanted - allowed);
            TooMany { exceeded, name: name.to_owned() }
        };
        Ok((allowed, exceeded.map(refuse)))
    }
}

impl From<TooMany> for Error {
    fn from(TooMany { exceeded, name }: TooMany) -> Self {
        Self::RateLimited { exceeded, name }
    }
}

fn one((_, refused): (u32, Option<TooMany>)) -> Result<(), Error> {
    refused.map_or(Ok(()), |too_many| Err(too_many.into()))
}

/// Identifies a client in keys of the store, which not every text may be part of.
fn client_id(claims: &Claims) -> String {
    let Claims { iss, kind, sub, .. } = claims;
    // None of the three contains a line feed.
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{iss}\n{kind}\n{sub}")))
}
