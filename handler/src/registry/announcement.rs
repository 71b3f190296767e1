//! Announces this handler and its applications to the discovery service.

mod pending;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use client::discovery::DiscoveryClient;
use parking_lot::Mutex;
use server::auth::ComponentToken;
use server::status::ErrorChain;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use types::{AppId, ComponentId, Credential, Kind, Kinded};

use self::pending::{PendingAnnouncement, PendingAnnouncements};

/// The wait after the first failure; it doubles with every further one.
const RETRY_WAIT_MIN: Duration = Duration::from_millis(200);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Interval at which the handler announces itself again, in case the discovery service lost its announcement.
const REPEAT_INTERVAL: Duration = Duration::from_secs(600);
/// Time that a client that registers or deletes an application waits for its announcement.
const SEND_WAIT_MAX: Duration = Duration::from_secs(2);

/// Announces the handler and its applications.
pub struct Announcer {
    discovery: DiscoveryClient,
    id: ComponentId,
    token: Arc<ComponentToken>,
    announcement: api::discovery::Announcement,
    pending: PendingAnnouncements,
    /// True if the last call to the discovery service failed for a reason that may pass.
    is_unreachable: AtomicBool,
    /// Reason why the handler has not been announced since it started; none if it was.
    missing: Mutex<Option<String>>,
}

impl Announcer {
    /// Announces the handler `id` with this announcement and its own component token.
    pub fn new(
        discovery: DiscoveryClient,
        id: ComponentId,
        token: Arc<ComponentToken>,
        announcement: api::discovery::Announcement,
    ) -> Self {
        let (pending, is_unreachable) = (PendingAnnouncements::default(), AtomicBool::new(false));
        let missing = Mutex::new(Some("the handler was not announced yet".to_owned()));
        Self { discovery, id, token, announcement, pending, is_unreachable, missing }
    }

    /// Announces the handler once.
    pub async fn announce(&self) -> Result<(), client::Error> {
        let announced = self.announce_with_current_token().await;
        self.is_unreachable.store(announced.as_ref().is_err_and(is_transient), Ordering::Relaxed);
        self.note(&announced);
        announced
    }

    /// Succeeds if the handler was announced since it started. After that, it works without the discovery service. The
    /// error is for everyone to read.
    pub fn check(&self) -> Result<(), String> {
        let missing = self.missing.lock().clone();
        missing.map_or(Ok(()), Err)
    }

    /// Notes how an announcement ended.
    fn note(&self, announced: &Result<(), client::Error>) {
        let mut missing = self.missing.lock();
        match announced {
            Ok(()) => *missing = None,
            Err(_) if missing.is_none() => {}
            Err(error) if is_transient(error) => {
                let reason = error.reason().map(|reason| format!(", because {reason}")).unwrap_or_default();
                *missing = Some(format!("the discovery service cannot be reached{reason}: see the log"));
            }
            Err(_) => {
                *missing =
                    Some("the discovery service refused the announcement of this handler: see the log".to_owned());
            }
        }
    }

    /// Announces the handler with its current token, or with a new one if the account service refuses that, too.
    ///
    /// Discovery may refuse a token for reasons of its own, such as its clock or the account services that it trusts.
    async fn announce_with_current_token(&self) -> Result<(), client::Error> {
        let token = self.token.current().unwrap_or_default();
        let announced = self.discovery.announce(&token, self.announcement.clone()).await;
        if !announced.as_ref().is_err_and(|error| error.kind() == Kind::Unauthenticated) {
            return announced;
        }
        match self.token.replace_if_refused(&token).await {
            Some(newer) => self.discovery.announce(&newer, self.announcement.clone()).await,
            None => announced,
        }
    }

    /// Keeps the handler announced and sends pending announcements, until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        _ = stop.run_until_cancelled(self.send_forever()).await;
    }

    /// Announces an application; later if the discovery service is unreachable, since the application works without.
    pub(crate) async fn add_application(&self, caller: &Credential, app_id: &AppId) {
        self.add_pending(Some(caller.clone()), app_id, true).await;
    }

    /// Withdraws the announcement of an application; later if the discovery service is unreachable. Without a caller,
    /// the handler does so itself. Returns whether the discovery service has answered.
    pub(crate) async fn remove_application(&self, caller: Option<Credential>, app_id: &AppId) -> bool {
        self.add_pending(caller, app_id, false).await
    }

    /// Adds an announcement, and waits a little until it is sent. Returns whether it was.
    async fn add_pending(&self, caller: Option<Credential>, app_id: &AppId, is_registered: bool) -> bool {
        match self.pending.add(app_id, caller, is_registered) {
            Some(sent) => !self.is_unreachable() && timeout(SEND_WAIT_MAX, sent).await.is_ok(),
            None => {
                tracing::warn!(%app_id, "dropped an announcement: too many are pending");
                false
            }
        }
    }

    async fn send_forever(&self) {
        let mut retry_wait = RETRY_WAIT_MIN;
        let mut next = Instant::now() + retry_wait;
        loop {
            let sent = tokio::select! {
                () = self.pending.added(), if !self.is_unreachable() => self.send_pending().await,
                () = sleep_until(next) => {
                    next = Instant::now() + REPEAT_INTERVAL;
                    match self.announce().await {
                        Ok(()) => self.send_pending().await,
                        error => error,
                    }
                }
            };
            self.is_unreachable.store(sent.as_ref().is_err_and(is_transient), Ordering::Relaxed);
            match sent {
                Ok(()) => retry_wait = RETRY_WAIT_MIN,
                Err(error) => {
                    let retry_s = retry_wait.as_secs_f32();
                    tracing::warn!(error = %ErrorChain(&error), retry_s, "cannot announce this handler: trying again");
                    next = Instant::now() + retry_wait;
                    retry_wait = (retry_wait * 2).min(RETRY_WAIT_MAX);
                }
            }
        }
    }

    /// Sends all pending announcements; those that fail for a reason that may pass stay pending.
    async fn send_pending(&self) -> Result<(), client::Error> {
        while let Some((app_id, announcement)) = self.pending.take() {
            match self.send(&app_id, &announcement).await {
                Err(error) if is_transient(&error) => {
                    self.pending.put_back(app_id, announcement);
                    return Err(error);
                }
                Err(error) => {
                    let error = ErrorChain(&error);
                    tracing::warn!(%app_id, %error, "the discovery service refused the announcement");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn is_unreachable(&self) -> bool {
        self.is_unreachable.load(Ordering::Relaxed)
    }

    async fn send(&self, app_id: &AppId, announcement: &PendingAnnouncement) -> Result<(), client::Error> {
        let own = || Credential::Token(self.token.current().unwrap_or_default());
        let credential = announcement.credential.clone().unwrap_or_else(own);
        if announcement.is_registered {
            self.discovery.add_application(&credential, &self.id, app_id).await
        } else {
            self.discovery.delete_application(&credential, &self.id, app_id).await
        }
    }
}

/// Returns true if the same call may succeed later: when the service is reachable, or knows this handler again.
fn is_transient(error: &client::Error) -> bool {
    matches!(error.kind(), Kind::Unavailable | Kind::Timeout | Kind::Exhausted | Kind::Conflict | Kind::NotFound)
}
