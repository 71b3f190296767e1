//! Applications, gateways and components, and their common parts: a permanent id, and collaborators with rights.
//!
//! An entity is stored as one document. Rules that span its parts are checked on what was read, and the store refuses
//! the write if the document changed in between.

pub(crate) mod access;
pub(crate) mod application;
pub(crate) mod collaborators;
pub(crate) mod component;
pub(crate) mod gateway;
mod index;
mod owner;
pub(crate) mod stored_key;
pub(crate) mod subject;

use schemars::JsonSchema;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Display},
};

use serde::{Serialize, de::DeserializeOwned};
use store::Key;
use types::{AccessKey, Claims, Scope, Timestamp, UserId};

use crate::{
    Account, Error, Result,
    documents::{Document, retried},
};

pub(crate) use self::index::EntityPage;

pub(crate) type Rights<R> = BTreeSet<R>;
pub(crate) type Collaborators<R> = BTreeMap<UserId, Rights<R>>;

/// A right to one kind of entity.
pub(crate) trait Right:
    Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
}

impl<R> Right for R where
    R: Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
}

/// A kind of entity: application, gateway or component.
pub(crate) trait Entity: Clone + Debug + Serialize + DeserializeOwned + Send + Sync {
    type Id: Clone + Display + Send + Sync;
    type Right: Right;

    /// Its name in messages, and in the keys of users' indexes.
    const NOUN: &'static str;
    const RIGHTS: &'static [Self::Right];
    /// The right to add and remove collaborators.
    const COLLABORATORS: Self::Right;
    /// The right to restore a deleted entity, if that is possible.
    const RESTORE: Option<Self::Right>;
    /// True if the owner cannot be removed. Otherwise somebody else becomes the owner.
    const OWNER_STAYS: bool;
    /// True if anyone can see that one exists. Then those who lack rights are told so, and not that it is missing.
    const IS_PUBLIC: bool = false;

    fn key(id: &str) -> Result<Key>;
    /// The scope that a token needs to access it.
    fn scope(id: &Self::Id) -> Scope;
    fn claimed<'a>(claims: &'a Claims, id: &Self::Id) -> Option<&'a Vec<Self::Right>>;
    /// Returns true if `id` names this entity.
    fn is(&self, id: &Self::Id) -> bool;
    fn is_deleted(&self) -> bool;
    fn collaborators(&self) -> &Collaborators<Self::Right>;
    /// Its owner, if the document names one: see [`Account::owner_of`].
    fn owner(&self) -> Option<&UserId>;
    fn set_owner(&mut self, owner: UserId);
    fn collaborators_mut(&mut self) -> &mut Collaborators<Self::Right>;
    /// Called when a collaborator has lost these rights.
    fn note_rights_taken(&mut self, _taken: &Rights<Self::Right>, _now: Timestamp) {}
    /// The rights that a key of this entity gives; none for any other key.
    fn rights_of_key(&self, account: &Account, key: &AccessKey) -> Option<Rights<Self::Right>>;

    /// A user's current rights. A deleted entity can at most be restored.
    fn rights_of(&self, user_id: &UserId) -> Rights<Self::Right> {
        let mut rights = self.collaborators().get(user_id).cloned().unwrap_or_default();
        if self.is_deleted() {
            rights.retain(|right| Some(*right) == Self::RESTORE);
        }
        rights
    }
}

pub(crate) fn all_rights<E: Entity>() -> Rights<E::Right> {
    E::RIGHTS.iter().copied().collect()
}

/// The response both if an entity does not exist and if the caller may not see it.
pub(crate) fn not_found<E: Entity>(id: &E::Id) -> Error {
    Error::NotFound { what: E::NOUN, id: id.to_string() }
}

/// Refuses empty lists and duplicates.
pub(crate) fn check_rights<R: Right>(rights: &[R]) -> Result<()> {
    let different: Rights<R> = rights.iter().copied().collect();
    if !rights.is_empty() && different.len() == rights.len() {
        Ok(())
    } else {
        Err(Error::Invalid { what: "rights", must: "must name at least one right, and none twice" })
    }
}

impl Account {
    /// The entity with this id, even if deleted.
    pub(crate) async fn entity<E: Entity>(&self, id: &E::Id) -> Result<Option<Document<E>>> {
        let found = self.documents.read::<E>(&E::key(&id.to_string())?).await?;
        Ok(found.filter(|stored| stored.value.is(id)))
    }

    /// Stores a new entity and adds it to its creator's index. Fails if the id is or was taken.
    pub(crate) async fn create_entity<E: Entity>(&self, creator: &UserId, id: &E::Id, entity: &E) -> Result<()> {
        self.check_room::<E>(creator).await?;
        if !self.documents.add(&E::key(&id.to_string())?, entity).await? {
            return Err(self.taken::<E>(creator, id).await?);
        }
        self.list_made::<E>(creator, id).await
    }

    /// The error for a taken id. Repairs the index if the creator retries after a crash.
    pub(crate) async fn taken<E: Entity>(&self, creator: &UserId, id: &E::Id) -> Result<Error> {
        let found = self.entity::<E>(id).await?;
        if found.is_some_and(|stored| stored.value.collaborators().contains_key(creator)) {
            self.repair_index::<E>(creator, id).await?;
        }
        Ok(Error::Taken { what: E::NOUN, id: id.to_string() })
    }

    /// Changes an entity regardless of who calls, to complete an earlier change.
    pub(crate) async fn change<E: Entity, T>(&self, id: &E::Id, change: impl Fn(&mut E) -> Result<T>) -> Result<T> {
        let attempt = || async {
            let mut stored = self.entity::<E>(id).await?.ok_or_else(|| not_found::<E>(id))?;
            let response = change(&mut stored.value)?;
            Ok(self.documents.replace(&stored).await?.then_some(response))
        };
        retried(E::NOUN, attempt).await
    }
}
