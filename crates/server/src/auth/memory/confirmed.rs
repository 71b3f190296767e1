//! The confirmed credentials, within a bound that no application can use up to the loss of others.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use lru::LruCache;
use types::Claims;

use super::{CredentialId, QuestionTime};
use crate::auth::entity::Entity;

/// The most confirmed credentials that are remembered, of all applications and gateways together.
pub(in crate::auth) const CREDENTIALS_MAX: usize = 16 * 1024;

/// A credential that was confirmed, and what it may do.
pub(super) struct Confirmed {
    pub(super) asked: QuestionTime,
    pub(super) claims: Arc<Claims>,
}

/// The confirmed credentials of each application and gateway.
///
/// When there are too many, the one with the most loses its least recently used.
#[derive(Default)]
pub(super) struct ConfirmedCredentials {
    entities: HashMap<Entity, Credentials>,
    /// The same applications and gateways. The last is the next to lose a credential.
    order: BTreeMap<Rank, Entity>,
    count: usize,
    uses: u64,
}

/// The number of credentials of an application or gateway, and its last use.
type Rank = (usize, Reverse<u64>);

/// The credentials of one application or gateway.
struct Credentials {
    entries: LruCache<CredentialId, Confirmed>,
    /// Orders applications and gateways by their last use.
    used: u64,
}

impl ConfirmedCredentials {
    pub(super) fn get(&mut self, entity: &Entity, id: &CredentialId) -> Option<&mut Confirmed> {
        self.uses += 1;
        let credentials = self.entities.get_mut(entity)?;
        let before = credentials.rank();
        credentials.used = self.uses;
        if let Some(entity) = self.order.remove(&before) {
            self.order.insert(credentials.rank(), entity);
        }
        credentials.entries.get_mut(id)
    }

    pub(super) fn put(&mut self, entity: &Entity, id: CredentialId, confirmed: Confirmed) {
        if self.get(entity, &id).is_none() {
            self.make_room();
            self.count += 1;
        }
        let used = self.uses;
        let credentials =
            self.entities.entry(entity.clone()).or_insert_with(|| Credentials { entries: LruCache::unbounded(), used });
        self.order.remove(&credentials.rank());
        credentials.entries.put(id, confirmed);
        self.order.insert(credentials.rank(), entity.clone());
    }

    pub(super) fn remove(&mut self, entity: &Entity, id: &CredentialId) {
        let Some(credentials) = self.entities.get_mut(entity) else { return };
        self.order.remove(&credentials.rank());
        if credentials.entries.pop(id).is_some() {
            self.count -= 1;
        }
        if credentials.entries.is_empty() {
            self.entities.remove(entity);
        } else {
            self.order.insert(credentials.rank(), entity.clone());
        }
    }

    fn make_room(&mut self) {
        if self.count < CREDENTIALS_MAX {
            return;
        }
        let Some(largest) = self.order.last_key_value().map(|(_, entity)| entity.clone()) else { return };
        let oldest = self.entities.get(&largest).and_then(|credentials| credentials.entries.peek_lru());
        if let Some(oldest) = oldest.map(|(id, _)| *id) {
            self.remove(&largest, &oldest);
        }
    }
}

impl Credentials {
    fn rank(&self) -> Rank {
        (self.entries.len(), Reverse(self.used))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use types::{Credential, Secret, Timestamp};

    use super::*;

    pub(in super::super) fn claims() -> Arc<Claims> {
        let claims = serde_json::json!({"iss": "a", "sub": "b", "type": "user", "iat": 0, "exp": 1});
        Arc::new(serde_json::from_value(claims).unwrap())
    }

    impl ConfirmedCredentials {
        fn add(&mut self, app_id: &str, number: usize) {
            let (entity, id) = key(app_id, number);
            let asked = QuestionTime { at: Timestamp::from_millis(0), number: 0 };
            self.put(&entity, id, Confirmed { asked, claims: claims() });
        }

        fn has(&mut self, app_id: &str, number: usize) -> bool {
            let (entity, id) = key(app_id, number);
            self.get(&entity, &id).is_some()
        }
    }

    fn key(app_id: &str, number: usize) -> (Entity, CredentialId) {
        let entity = Entity::Application(app_id.parse().unwrap());
        let id = CredentialId::of(&entity, &Credential::Token(Secret::new(number.to_string())));
        (entity, id)
    }

    #[test]
    fn an_application_with_many_credentials_only_crowds_out_its_own() {
        let mut credentials = ConfirmedCredentials::default();
        (0..3).for_each(|number| credentials.add("neighbour", number));
        (0..CREDENTIALS_MAX + 10).for_each(|number| credentials.add("greedy", number));
        assert_eq!(credentials.count, CREDENTIALS_MAX);
        assert!((0..3).all(|number| credentials.has("neighbour", number)));
        assert!(!credentials.has("greedy", 12) && credentials.has("greedy", 13), "the oldest are forgotten");
    }

    #[test]
    fn of_applications_with_as_many_credentials_the_unused_one_loses_first() {
        let mut credentials = ConfirmedCredentials::default();
        (0..CREDENTIALS_MAX).for_each(|number| credentials.add(&format!("app-{number}"), 0));
        assert!(credentials.has("app-0", 0));
        credentials.add("new", 0);
        assert!(credentials.has("app-0", 0) && !credentials.has("app-1", 0) && credentials.has("new", 0));
        credentials.remove(&key("new", 0).0, &key("new", 0).1);
        assert_eq!(credentials.count, CREDENTIALS_MAX - 1);
        assert_eq!(credentials.entities.len(), CREDENTIALS_MAX - 1, "nothing is left of it");
        assert_eq!(credentials.order.len(), CREDENTIALS_MAX - 1);
    }
}
