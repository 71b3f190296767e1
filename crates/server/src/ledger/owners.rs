//! Users to whom applications and gateways belong, as the account service says.

use std::{
    collections::BTreeSet,
    mem,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::timeout;
use types::{AppId, Clock, GatewayId, Timestamp, UserId};

use super::Owner;

/// Maximum number of applications remembered.
const KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);
/// Time for which an owner counts as known, in seconds: ownership can be handed over.
const KNOWN_S: u64 = 300;
/// Maximum duration of a question, and the time in seconds for which none is asked again after one that failed.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
const UNKNOWN_S: u64 = 5;
/// Maximum number of applications that wait to be asked about because they are not remembered.
const MISSED_MAX: usize = 1024;

/// Says which user something belongs to.
#[async_trait]
pub trait OwnerSource: Send + Sync {
    /// Returns the user of an application; `None` if nobody says. It may fail for a moment, and is asked again later.
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId>;

    /// Returns the user of a gateway. By default, nobody says.
    async fn owner_of_gateway(&self, _gateway_id: &GatewayId) -> Option<UserId> {
        None
    }
}

/// An entity that belongs to a user.
pub(super) enum Entity {
    Application(AppId),
    Gateway(GatewayId),
}

/// The owners of applications. An application whose user is not known is an owner of its own.
pub struct Owners {
    source: OnceLock<Arc<dyn OwnerSource>>,
    clock: Arc<dyn Clock>,
    known: Mutex<LruCache<AppId, CachedOwner>>,
    missed: Mutex<BTreeSet<AppId>>,
}

struct CachedOwner {
    owner: Owner,
    until: Timestamp,
}

impl Owners {
    /// Asks `source`, and remembers its responses.
    pub fn new(source: Arc<dyn OwnerSource>, clock: Arc<dyn Clock>) -> Self {
        let owners = Self::unknown(clock);
        owners.ask(source);
        owners
    }

    /// Every application is an owner of its own, as where there is no account service.
    pub fn unknown(clock: Arc<dyn Clock>) -> Self {
        let known = Mutex::new(LruCache::new(KNOWN));
        Self { source: OnceLock::new(), clock, known, missed: Mutex::default() }
    }

    /// Asks `source` from now on, if there is nobody to ask yet.
    pub fn ask(&self, source: Arc<dyn OwnerSource>) {
        _ = self.source.set(source);
    }

    /// The owner of an application; asks if that is not known.
    pub async fn of(&self, app_id: &AppId) -> Owner {
        let now = self.clock.now();
        if let Some(known) = self.known.lock().get(app_id)
            && now < known.until
        {
            return known.owner.clone();
        }
        let said = match self.source.get() {
            Some(source) => timeout(ASK_TIMEOUT, source.owner_of(app_id)).await.ok().flatten(),
            None => None,
        };
        let (owner, seconds) = match &said {
            Some(user_id) => (Owner::from(user_id), KNOWN_S),
            // The last answer counts on while there is no other.
            None => (self.remembered(app_id).unwrap_or_else(|| Owner::from(app_id)), UNKNOWN_S),
        };
        let until = now.plus(Duration::from_secs(seconds));
        self.known.lock().put(app_id.clone(), CachedOwner { owner: owner.clone(), until });
        owner
    }

    /// The owner of an application as far as it is known. One that is not is asked for later.
    pub fn last(&self, app_id: &AppId) -> Owner {
        self.remembered(app_id).unwrap_or_else(|| {
            let mut missed = self.missed.lock();
            if missed.len() < MISSED_MAX {
                missed.insert(app_id.clone());
            }
            Owner::from(app_id)
        })
    }

    /// The user of an application or gateway; asks if that is not known. The owner of a gateway is not remembered.
    pub(super) async fn user_of(&self, entity: &Entity) -> Option<Owner> {
        let owner = match (entity, self.source.get()) {
            (Entity::Application(app_id), _) => self.of(app_id).await,
            (Entity::Gateway(id), Some(source)) => {
                Owner::from(&timeout(ASK_TIMEOUT, source.owner_of_gateway(id)).await.ok()??)
            }
            (Entity::Gateway(_), None) => return None,
        };
        matches!(owner, Owner::User(_)).then_some(owner)
    }

    /// Applications whose owners were needed and not known, to ask for them.
    pub(super) fn take_missed(&self) -> BTreeSet<AppId> {
        mem::take(&mut self.missed.lock())
    }

    fn remembered(&self, app_id: &AppId) -> Option<Owner> {
        self.known.lock().get(app_id).map(|known| known.owner.clone())
    }
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Owners").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Alice(Mutex<Option<UserId>>);

    #[async_trait]
    impl OwnerSource for Alice {
        async fn owner_of(&self, _app_id: &AppId) -> Option<UserId> {
            self.0.lock().clone()
        }
    }

    #[tokio::test]
    async fn the_last_answer_counts_while_there_is_no_other() {
        let clock = testing::ManualClock::new();
        let source = Arc::new(Alice(Mutex::new(Some(UserId::from_bytes([1; 12])))));
        let owners = Owners::new(source.clone(), clock.clone());
        let app_id: AppId = "app".parse().unwrap();
        let alice = Owner::from(&UserId::from_bytes([1; 12]));
        assert_eq!(owners.last(&app_id), Owner::from(&app_id));
        assert_eq!(owners.take_missed(), BTreeSet::from([app_id.clone()]));
        assert_eq!(owners.of(&app_id).await, alice);
        assert!(owners.last(&app_id) == alice && owners.take_missed().is_empty());
        *source.0.lock() = None;
        clock.advance(Duration::from_secs(KNOWN_S + 1));
        assert_eq!(owners.of(&app_id).await, alice);
    }
}
