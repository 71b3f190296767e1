//! Tells the discovery service that this handler is here, and which applications are on it.

mod pending;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use client::discovery::DiscoveryClient;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use types::{AppId, ComponentId, Credential, Kind, Kinded, Secret};

use self::pending::{Item, News};

/// How long to wait after the first failure; every further one doubles it.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// The longest wait between two tries.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// How often an accepted announcement is repeated, in case the discovery service lost it.
const REPEAT: Duration = Duration::from_secs(600);
/// How long who changes an application waits until the discovery service knows.
const TELL_WAIT: Duration = Duration::from_secs(2);

/// Speaks for the handler at the discovery service.
pub struct Announcer {
    discovery: DiscoveryClient,
    id: ComponentId,
    token: Secret,
    announcement: api::discovery::Announcement,
    news: News,
    /// Whether the discovery service could not take the last thing that it was told.
    away: AtomicBool,
}

impl Announcer {
    /// Announces `announcement` with the handler's own component token.
    pub fn new(
        discovery: DiscoveryClient,
        id: ComponentId,
        token: Secret,
        announcement: api::discovery::Announcement,
    ) -> Self {
        Self { discovery, id, token, announcement, news: News::default(), away: AtomicBool::new(false) }
    }

    /// Announces the handler once.
    pub async fn announce(&self) -> Result<(), client::Error> {
        let announced = self.discovery.announce(&self.token, self.announcement.clone()).await;
        self.away.store(announced.as_ref().is_err_and(may_pass), Ordering::Relaxed);
        announced
    }

    /// Keeps the handler announced until `stop`, and passes on what is new about applications.
    ///
    /// A discovery service that is away is tried again.
    pub async fn run(&self, stop: CancellationToken) {
        _ = stop.run_until_cancelled(self.speak()).await;
    }

    /// Says that an application is here.
    ///
    /// It is said later when the discovery service is away, since the application works without.
    pub async fn add_application(&self, caller: &Credential, app_id: &AppId) {
        self.tell(caller, app_id, true).await;
    }

    /// Says that an application is no longer here; later when the discovery service is away.
    pub async fn remove_application(&self, caller: &Credential, app_id: &AppId) {
        self.tell(caller, app_id, false).await;
    }

    async fn tell(&self, caller: &Credential, app_id: &AppId, is_here: bool) {
        match self.news.add(app_id, caller.clone(), is_here) {
            Some(said) if !self.is_away() => _ = timeout(TELL_WAIT, said).await,
            Some(_) => {}
            None => tracing::warn!(%app_id, "too much to tell the discovery service: this will not be said"),
        }
    }

    /// Says what there is to say, for ever.
    async fn speak(&self) {
        let mut retry = RETRY_MIN;
        let mut next = Instant::now() + retry;
        loop {
            let said = tokio::select! {
                () = self.news.arrived(), if !self.is_away() => self.pass_on().await,
                () = sleep_until(next) => {
                    next = Instant::now() + REPEAT;
                    match self.announce().await {
                        Ok(()) => self.pass_on().await,
                        away => away,
                    }
                }
            };
            self.away.store(said.as_ref().is_err_and(may_pass), Ordering::Relaxed);
            match said {
                Ok(()) => retry = RETRY_MIN,
                Err(error) => {
                    tracing::warn!(%error, retry_s = retry.as_secs_f32(), "cannot tell the discovery service");
                    next = Instant::now() + retry;
                    retry = (retry * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Passes on all news; what cannot be said now stays.
    async fn pass_on(&self) -> Result<(), client::Error> {
        while let Some((app_id, item)) = self.news.take() {
            match self.say(&app_id, &item).await {
                Err(error) if may_pass(&error) => {
                    self.news.give_back(app_id, item);
                    return Err(error);
                }
                Err(error) => tracing::warn!(%app_id, %error, "the discovery service refuses to know of this"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    async fn say(&self, app_id: &AppId, item: &Item) -> Result<(), client::Error> {
        if item.is_here {
            self.discovery.add_application(&item.credential, &self.id, app_id).await
        } else {
            self.discovery.delete_application(&item.credential, &self.id, app_id).await
        }
    }
}

/// Whether the same may be accepted later: when the service is there, or knows this handler again.
fn may_pass(error: &client::Error) -> bool {
    matches!(error.kind(), Kind::Unavailable | Kind::Timeout | Kind::Exhausted | Kind::Conflict | Kind::NotFound)
}
