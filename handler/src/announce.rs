//! Tells the discovery service that this handler is here, and which applications are on it.

use std::time::Duration;

use client::discovery::DiscoveryClient;
use tokio_util::sync::CancellationToken;
use types::{AppId, ComponentId, Credential, Secret};

/// How long to wait after the first failure; every further one doubles it.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// The longest wait between two tries.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// How often an accepted announcement is repeated, in case the discovery service lost it.
const REPEAT: Duration = Duration::from_secs(600);

/// Speaks for the handler at the discovery service.
pub struct Announcer {
    discovery: DiscoveryClient,
    id: ComponentId,
    token: Secret,
    announcement: api::discovery::Announcement,
}

impl Announcer {
    /// Announces `announcement` with the handler's own component token.
    pub fn new(
        discovery: DiscoveryClient,
        id: ComponentId,
        token: Secret,
        announcement: api::discovery::Announcement,
    ) -> Self {
        Self { discovery, id, token, announcement }
    }

    /// Announces the handler once.
    pub async fn announce(&self) -> Result<(), client::Error> {
        self.discovery.announce(&self.token, self.announcement.clone()).await
    }

    /// Keeps the handler announced until `stop`; a discovery service that is away is tried again.
    pub async fn run(&self, stop: CancellationToken) {
        let mut wait = RETRY_MIN;
        while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
            wait = match self.announce().await {
                Ok(()) => REPEAT,
                Err(error) => {
                    let retry = if wait == REPEAT { RETRY_MIN } else { (wait * 2).min(RETRY_MAX) };
                    tracing::warn!(%error, retry_s = retry.as_secs_f32(), "cannot announce this handler");
                    retry
                }
            };
        }
    }

    /// Says that an application is here; a failure is only logged, since the application works without.
    pub async fn add_application(&self, caller: &Credential, app_id: &AppId) {
        if let Err(error) = self.discovery.add_application(caller, &self.id, app_id).await {
            tracing::warn!(%app_id, %error, "cannot tell the discovery service where this application is");
        }
    }

    /// Says that an application is no longer here; a failure is only logged.
    pub async fn remove_application(&self, caller: &Credential, app_id: &AppId) {
        if let Err(error) = self.discovery.delete_application(caller, &self.id, app_id).await {
            tracing::warn!(%app_id, %error, "cannot tell the discovery service that this application is gone");
        }
    }
}
