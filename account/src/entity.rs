//! What applications, gateways and components have in common: an id that is taken for ever, and collaborators.
//!
//! An entity is one document, so a rule that spans its parts is checked on what was read, and the store refuses the
//! change when somebody else was faster. Every user has an index of theirs.

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

use self::access::{Caller, Need};
use crate::{
    Account, Error, Result,
    documents::{Stored, retried},
};

pub(crate) use self::index::Listing;

/// What somebody may do to an entity.
pub(crate) type Rights<R> = BTreeSet<R>;
/// Who may do what.
pub(crate) type Collaborators<R> = BTreeMap<UserId, Rights<R>>;

/// A right of one sort of entity.
pub(crate) trait Right:
    Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<R> Right for R where
    R: Copy + Ord + Debug + Into<&'static str> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A sort of entity.
pub(crate) trait Entity: Clone + Debug + Serialize + DeserializeOwned + Send + Sync {
    /// What paths name it by.
    type Id: Clone + Display + Send + Sync;
    /// What one may do to it.
    type Right: Right;

    /// What people call such a thing; also where users' indexes list it.
    const NOUN: &'static str;
    /// Everything that one may do to it.
    const RIGHTS: &'static [Self::Right];
    /// What lets one add and remove collaborators.
    const COLLABORATORS: Self::Right;
    /// What lets one restore it after it was deleted, if that can be done.
    const RESTORE: Option<Self::Right>;

    /// Where it is kept.
    fn key(id: &str) -> Result<Key>;
    /// What a token must name to be about it.
    fn scope(id: &Self::Id) -> Scope;
    /// What a token says that its bearer may do to it.
    fn claimed<'a>(claims: &'a Claims, id: &Self::Id) -> Option<&'a Vec<Self::Right>>;
    /// Whether it is what this id means.
    fn is(&self, id: &Self::Id) -> bool;
    /// Whether it is deleted.
    fn is_deleted(&self) -> bool;
    /// Who may do what to it.
    fn collaborators(&self) -> &Collaborators<Self::Right>;
    /// Who stays among them until it is somebody else's.
    fn owner(&self) -> Option<&UserId> {
        None
    }
    /// Who may do what to it, to be changed.
    fn collaborators_mut(&mut self) -> &mut Collaborators<Self::Right>;
    /// What somebody with this key may do to it; nothing when it is no key of this entity.
    fn rights_of_key(&self, account: &Account, key: &AccessKey) -> Option<Rights<Self::Right>>;

    /// What a user may do to it now; a deleted one can at most be restored.
    fn rights_of(&self, user_id: &UserId) -> Rights<Self::Right> {
        let mut rights = self.collaborators().get(user_id).cloned().unwrap_or_default();
        if self.is_deleted() {
            rights.retain(|right| Some(*right) == Self::RESTORE);
        }
        rights
    }
}

/// Everything that one may do to an entity, which its creator may.
pub(crate) fn all_rights<E: Entity>() -> Rights<E::Right> {
    E::RIGHTS.iter().copied().collect()
}

/// The answer for an entity that does not exist, and for one that the caller may not know of.
pub(crate) fn not_found<E: Entity>(id: &E::Id) -> Error {
    Error::NotFound { what: E::NOUN, id: id.to_string() }
}

impl Account {
    /// The entity with this id, deleted or not.
    pub(crate) async fn entity<E: Entity>(&self, id: &E::Id) -> Result<Option<Stored<E>>> {
        let found = self.documents.read::<E>(&E::key(&id.to_string())?).await?;
        Ok(found.filter(|stored| stored.value.is(id)))
    }

    /// Writes a new entity and lists it for its creator; refuses an id that is or was taken.
    pub(crate) async fn create_entity<E: Entity>(&self, creator: &UserId, id: &E::Id, entity: &E) -> Result<()> {
        self.check_room::<E>(creator).await?;
        if !self.documents.create(&E::key(&id.to_string())?, entity).await? {
            return Err(self.taken::<E>(creator, id).await?);
        }
        self.list_made::<E>(creator, id).await
    }

    /// The answer for an id that is taken. It may be the creator's own second try after a crash.
    pub(crate) async fn taken<E: Entity>(&self, creator: &UserId, id: &E::Id) -> Result<Error> {
        let found = self.entity::<E>(id).await?;
        if found.is_some_and(|stored| stored.value.collaborators().contains_key(creator)) {
            self.repair_index::<E>(creator, id).await?;
        }
        Ok(Error::Taken { what: E::NOUN, id: id.to_string() })
    }

    /// Changes an entity for a caller who can do what it needs, at the moment of the change.
    pub(crate) async fn change_as<E: Entity, T>(
        &self,
        caller: &Caller,
        id: &E::Id,
        need: Need<E::Right>,
        change: impl Fn(&mut E, &Rights<E::Right>) -> Result<T>,
    ) -> Result<T> {
        let attempt = || async {
            let mut access = self.access::<E>(caller, id, need.which()).await?;
            if let Some(right) = need.right() {
                access.require(right)?;
            }
            let answer = change(&mut access.entity.value, &access.rights)?;
            Ok(self.documents.replace(&access.entity).await?.then_some(answer))
        };
        retried(E::NOUN, attempt).await
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
