//! Whether whoever set a webhook may still read the messages of its application, as the account service says.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use client::account::AccountClient;
use lru::LruCache;
use outputs::{Grants, Standing};
use server::{audit::AuditLog, auth::ComponentToken, status::ErrorChain};
use tokio::time::timeout;
use types::{AppId, ApplicationRight, Clock, Credential, Grant, Kind, Kinded, Timestamp};

/// How many grants are remembered.
const KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);
/// How long an answer counts as fresh, as those about credentials do.
const FRESH: Duration = Duration::from_secs(2);
/// How long nothing is asked after no answer.
const SILENCE_PAUSE: Duration = Duration::from_secs(5);
/// How long a question may take, and how long if deliveries can go on without an answer.
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
    known: Mutex<LruCache<(AppId, Grant), Known>>,
}

/// What the account service said of a grant.
#[derive(Clone, Copy)]
struct Known {
    standing: Standing,
    /// When it last confirmed the grant, unless it has refused it since.
    confirmed: Option<Timestamp>,
    /// When it was last asked, and how long that counts.
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

    /// What the account service says; none if it cannot be asked.
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

    fn known(&self) -> MutexGuard<'_, LruCache<(AppId, Grant), Known>> {
        // No panic can leave it half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now >= self.asked && now.since(self.asked) < self.fresh_for
    }

    /// Whether the last confirmation counts while nobody can be asked.
    fn may_go_on(&self, now: Timestamp, grace_time: Duration) -> bool {
        self.confirmed.is_some_and(|confirmed| now.since(confirmed) <= grace_time)
    }
}

#[async_trait]
impl Grants for AccountGrants {
    async fn standing(&self, app_id: &AppId, grant: &Grant) -> Standing {
        let key = (app_id.clone(), grant.clone());
        let (now, before) = (self.clock.now(), self.known().get(&key).copied());
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
        self.known().put(key, Known { standing, confirmed, asked: now, fresh_for });
        self.report(app_id, grant, before.map(|known| known.standing), standing);
        standing
    }
}
