//! Asks the account service if the user who set a webhook may still read the messages of its application.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use async_trait::async_trait;
use client::account::AccountClient;
use lru::LruCache;
use outputs::{Grants, Standing};
use parking_lot::Mutex;
use server::{audit::AuditLog, auth::ComponentToken, status::ErrorChain};
use tokio::time::timeout;
use types::{AppId, ApplicationRight, Clock, Credential, Grant, Kind, Kinded, Timestamp};

/// Maximum number of grants remembered.
const KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);
/// Time that an answer counts as fresh, as those about credentials do.
const FRESH: Duration = Duration::from_secs(2);
/// Time without further questions after no answer.
const SILENCE_PAUSE: Duration = Duration::from_secs(5);
/// Time limits of a question, and of one without whose answer deliveries can go on.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
const ASK_AGAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the account service about grants, with the handler's own token. While it cannot be asked, what it confirmed
/// counts for the grace time, like the credentials of MQTT clients.
pub struct AccountGrants {
    client: AccountClient,
    token: Arc<ComponentToken>,
    grace_time: Duration,
    audit: AuditLog,
    clock: Arc<dyn Clock>,
    known: Mutex<LruCache<(AppId, Grant), CachedGrant>>,
}

/// Answers of the account service about a grant.
#[derive(Clone, Copy)]
struct CachedGrant {
    standing: Standing,
    /// Time of the last confirmation, unless the grant was refused since.
    confirmed: Option<Timestamp>,
    /// Time of the last question, and how long its answer counts.
    asked: Timestamp,
    fresh_for: Duration,
}

impl AccountGrants {
    /// Nothing is known at first.
    pub fn new(
        client: AccountClient,
        token: Arc<ComponentToken>,
        grace_time: Duration,
        audit: AuditLog,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let named = token.clone();
        let client = client.identified_by(move || named.current());
        Self { client, token, grace_time, audit, clock, known: Mutex::new(LruCache::new(KNOWN)) }
    }

    /// Asks the account service; none if it cannot be asked.
    async fn ask(&self, app_id: &AppId, grant: &Grant, can_go_on: bool) -> Option<Standing> {
        let token = Credential::Token(self.token.current()?);
        let limit = if can_go_on { ASK_AGAIN_TIMEOUT } else { ASK_TIMEOUT };
        match timeout(limit, self.client.granted_rights(&token, app_id, grant)).await.ok()? {
            Ok(rights) if rights.contains(&ApplicationRight::MessagesUpRead) => Some(Standing::Holds),
            Ok(_) => Some(Standing::Withdrawn),
            // The application was deleted there.
            Err(error) if error.kind() == Kind::NotFound => Some(Standing::Withdrawn),
            Err(error) => {
                tracing::debug!(%app_id, error = %ErrorChain(&error), "cannot ask about the grant of a webhook");
                None
            }
        }
    }

    /// Says it once when webhooks stop, and when they go on.
    fn report(&self, app_id: &AppId, grant: &Grant, before: Option<Standing>, now: Standing) {
        match (before, now) {
            (Some(before), now) if before == now => {}
            (_, Standing::Withdrawn) => {
                tracing::warn!(%app_id, set_by = %grant, "webhooks are stopped: whoever set them may no longer read messages");
                self.audit.note("webhooks stopped", grant, app_id);
            }
            (_, Standing::Unknown) => {
                tracing::warn!(%app_id, set_by = %grant, "webhooks wait: the account service does not say whether they may go on");
            }
            (Some(_), Standing::Holds) => {
                tracing::info!(%app_id, set_by = %grant, "webhooks go on");
                self.audit.note("webhooks resumed", grant, app_id);
            }
            (None, Standing::Holds) => {}
        }
    }
}

impl CachedGrant {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now >= self.asked && now.since(self.asked) < self.fresh_for
    }

    /// Returns true if the last confirmation counts while nobody can be asked.
    fn may_go_on(&self, now: Timestamp, grace_time: Duration) -> bool {
        self.confirmed.is_some_and(|confirmed| now.since(confirmed) <= grace_time)
    }
}

#[async_trait]
impl Grants for AccountGrants {
    async fn standing(&self, app_id: &AppId, grant: &Grant) -> Standing {
        let key = (app_id.clone(), grant.clone());
        let (now, before) = (self.clock.now(), self.known.lock().get(&key).copied());
        if let Some(known) = before.filter(|known| known.is_fresh(now)) {
            return known.standing;
        }
        let can_go_on = before.is_some_and(|known| known.may_go_on(now, self.grace_time));
        let said = self.ask(app_id, grant, can_go_on).await;
        let now = self.clock.now();
        let (standing, confirmed, fresh_for) = match said {
            Some(Standing::Holds) => (Standing::Holds, Some(now), FRESH),
            Some(other) => (other, None, FRESH),
            None => {
                let standing = if can_go_on { Standing::Holds } else { Standing::Unknown };
                (standing, before.and_then(|known| known.confirmed), SILENCE_PAUSE)
            }
        };
        self.known.lock().put(key, CachedGrant { standing, confirmed, asked: now, fresh_for });
        self.report(app_id, grant, before.map(|known| known.standing), standing);
        standing
    }
}
