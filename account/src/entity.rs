//! What applications, gateways and components have in common: an id that is never reused, and collaborators.
//!
//! An entity is one document, so rules that span its parts are enforced by optimistic concurrency. Every user has an
//! index of their entities.

pub(crate) mod access;
pub(crate) mod collaborators;
mod index;
pub(crate) mod stored_key;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Display},
};

use serde::{Serialize, de::DeserializeOwned};
use store::Key;
use types::{AccessKey, Claims, Scope, UserId};

use crate::{
    Account, Error, Result,
    documents::{Stored, retried},
};

pub(crate) use self::index::EntityPage;

/// A user's rights to an entity.
pub(crate) type Rights<R> = BTreeSet<R>;
/// The collaborators of an entity with their rights.
pub(crate) type Collaborators<R> = BTreeMap<UserId, Rights<R>>;

/// A right to one kind of entity.
pub(crate) trait Right:
    Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<R> Right for R where
    R: Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A kind of entity.
pub(crate) trait Entity: Clone + Debug + Serialize + DeserializeOwned + Send + Sync {
    /// How paths name it.
    type Id: Clone + Display + Send + Sync;
    /// The rights to it.
    type Right: Right;

    /// What people call it; also its prefix in users' indexes.
    const NOUN: &'static str;
    /// All rights to it.
    const RIGHTS: &'static [Self::Right];
    /// The right to add and remove collaborators.
    const COLLABORATORS: Self::Right;
    /// The right to restore it after deletion, if that is possible.
    const RESTORE: Option<Self::Right>;

    /// Its key in the store.
    fn key(id: &str) -> Result<Key>;
    /// The scope that a token needs for it.
    fn scope(id: &Self::Id) -> Scope;
    /// The rights to it in a token's claims.
    fn claimed<'a>(claims: &'a Claims, id: &Self::Id) -> Option<&'a Vec<Self::Right>>;
    /// Whether this id refers to it.
    fn is(&self, id: &Self::Id) -> bool;
    /// Whether it is deleted.
    fn is_deleted(&self) -> bool;
    /// Its collaborators.
    fn collaborators(&self) -> &Collaborators<Self::Right>;
    /// Its owner, who cannot be removed.
    fn owner(&self) -> Option<&UserId> {
        None
    }
    /// Its collaborators, to be changed.
    fn collaborators_mut(&mut self) -> &mut Collaborators<Self::Right>;
    /// The rights of this key; `None` if it is not a key of this entity.
    fn rights_of_key(&self, account: &Account, key: &AccessKey) -> Option<Rights<Self::Right>>;

    /// A user's current rights; the only right to a deleted entity is to restore it.
    fn rights_of(&self, user_id: &UserId) -> Rights<Self::Right> {
        let mut rights = self.collaborators().get(user_id).cloned().unwrap_or_default();
        if self.is_deleted() {
            rights.retain(|right| Some(*right) == Self::RESTORE);
        }
        rights
    }
}

/// All rights to an entity, as its creator has them.
pub(crate) fn all_rights<E: Entity>() -> Rights<E::Right> {
    E::RIGHTS.iter().copied().collect()
}

/// The error for an entity that does not exist, or that the caller may not see.
pub(crate) fn not_found<E: Entity>(id: &E::Id) -> Error {
    Error::NotFound { what: E::NOUN, id: id.to_string() }
}

/// Refuses rights that are none at all or that come twice.
pub(crate) fn check_rights<R: Right>(rights: &[R]) -> Result<()> {
    let different: Rights<R> = rights.iter().copied().collect();
    if !rights.is_empty() && different.len() == rights.len() {
        Ok(())
    } else {
        Err(Error::Invalid { what: "rights", must: "must name at least one right, and each only once" })
    }
}

impl Account {
    /// Returns an entity, even if it is deleted.
    pub(crate) async fn entity<E: Entity>(&self, id: &E::Id) -> Result<Option<Stored<E>>> {
        let found = self.documents.read::<E>(&E::key(&id.to_string())?).await?;
        Ok(found.filter(|stored| stored.value.is(id)))
    }

    /// Creates an entity and adds it to its creator's index; fails if the id is or was taken.
    pub(crate) async fn create_entity<E: Entity>(&self, creator: &UserId, id: &E::Id, entity: &E) -> Result<()> {
        self.check_room::<E>(creator).await?;
        if !self.documents.create(&E::key(&id.to_string())?, entity).await? {
            return Err(self.taken::<E>(creator, id).await?);
        }
        self.list_made::<E>(creator, id).await
    }

    /// The error for an id that is taken, which may be by the creator's own attempt before a crash.
    pub(crate) async fn taken<E: Entity>(&self, creator: &UserId, id: &E::Id) -> Result<Error> {
        let found = self.entity::<E>(id).await?;
        if found.is_some_and(|stored| stored.value.collaborators().contains_key(creator)) {
            self.repair_index::<E>(creator, id).await?;
        }
        Ok(Error::Taken { what: E::NOUN, id: id.to_string() })
    }

    /// Changes an entity on behalf of nobody in particular: to finish what was begun.
    pub(crate) async fn change<E: Entity, T>(&self, id: &E::Id, change: impl Fn(&mut E) -> Result<T>) -> Result<T> {
        let attempt = || async {
            let mut stored = self.entity::<E>(id).await?.ok_or_else(|| not_found::<E>(id))?;
            let answer = change(&mut stored.value)?;
            Ok(self.documents.replace(&stored).await?.then_some(answer))
        };
        retried(E::NOUN, attempt).await
    }
}
