//! Indexes of a user's entities: those that the user created, and those shared with the user.
//!
//! An index only says where to look; the entity has its collaborators. There are two, because anybody can add to the
//! second one: only what a user created counts against the user's limits, and it is never hidden behind what others
//! shared.

use std::collections::BTreeSet;

use store::Key;
use types::UserId;

use super::Entity;
use crate::{Account, Error, Result, documents::Stored, user::user_tag};

/// Maximum number of entities of one kind that a user has created and not deleted.
const MADE_MAX: usize = 1000;
/// Page size of the list of shared entities.
const PAGE_LENGTH: usize = 1000;

/// Entities of a user, ordered by id.
#[derive(Debug)]
pub(crate) struct EntityPage<E> {
    /// The entities, deleted ones included.
    pub(crate) entities: Vec<E>,
    /// The id after which the next page starts.
    pub(crate) next: Option<String>,
}

impl Account {
    /// The entities of a user: all that the user made with the first others, or the next others from `after` on.
    pub(crate) async fn entities_of<E: Entity>(&self, user_id: &UserId, after: Option<&str>) -> Result<EntityPage<E>> {
        let made = match after {
            Some(_) => Vec::new(),
            None => self.documents.keys(&made_key::<E>(user_id, "")?, MADE_MAX).await?,
        };
        let from = after.map(|id| shared_key::<E>(user_id, id)).transpose()?;
        let prefix = shared_key::<E>(user_id, "")?;
        let shared = self.documents.keys_after(&prefix, from.as_ref(), PAGE_LENGTH).await?;
        let next = shared.last().filter(|_| shared.len() == PAGE_LENGTH).map(|key| id_in(key).to_owned());
        let ids: BTreeSet<&str> = made.iter().chain(&shared).map(id_in).collect();
        let keys = ids.into_iter().map(E::key).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<E>>> = self.documents.read_all(&keys).await?;
        let own = found.into_iter().flatten().filter(|stored| stored.value.collaborators().contains_key(user_id));
        Ok(EntityPage { entities: own.map(|stored| stored.value).collect(), next })
    }

    /// Rejects another entity if a user has created too many.
    pub(crate) async fn check_room<E: Entity>(&self, user_id: &UserId) -> Result<()> {
        let prefix = made_key::<E>(user_id, "")?;
        let mut entries = self.documents.keys(&prefix, MADE_MAX).await?;
        while entries.len() >= MADE_MAX {
            if !self.release_gone::<E>(user_id, &entries).await? {
                return Err(Error::Full { what: E::NOUN, count_max: MADE_MAX });
            }
            entries = self.documents.keys(&prefix, MADE_MAX).await?;
        }
        Ok(())
    }

    /// Adds an entity to those that a user created.
    pub(crate) async fn list_made<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&made_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Adds an entity to those shared with a user.
    pub(crate) async fn list_shared<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&shared_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Adds an entity to the index if it is missing, because the process may have crashed before it was added.
    pub(crate) async fn repair_index<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        match self.listed::<E>(user_id, id).await?[..] {
            [] => self.list_shared::<E>(user_id, id).await,
            _ => Ok(()),
        }
    }

    /// The index entries of an entity.
    pub(crate) async fn listed<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<Vec<Stored<()>>> {
        let id = id.to_string();
        let keys = [made_key::<E>(user_id, &id)?, shared_key::<E>(user_id, &id)?];
        Ok(self.documents.read_all(&keys).await?.into_iter().flatten().collect())
    }

    /// Removes entries of entities that were deleted or left; returns whether there were any.
    async fn release_gone<E: Entity>(&self, user_id: &UserId, entries: &[Key]) -> Result<bool> {
        let keys = entries.iter().map(|key| E::key(id_in(key))).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<E>>> = self.documents.read_all(&keys).await?;
        let mut made = false;
        for (key, stored) in entries.iter().zip(found) {
            let own = stored.filter(|stored| stored.value.collaborators().contains_key(user_id));
            if own.as_ref().is_some_and(|stored| !stored.value.is_deleted()) {
                continue;
            }
            if own.is_some() && E::RESTORE.is_some() {
                self.documents.put(&shared_key::<E>(user_id, id_in(key))?, &()).await?;
            }
            self.documents.remove(key).await?;
            made = true;
        }
        Ok(made)
    }
}

/// The key of an entity that the user created; an empty id gives the prefix.
fn made_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("made/{}/{id}", E::NOUN))?)
}

/// The key of an entity shared with the user; an empty id gives the prefix.
fn shared_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("{}/{id}", E::NOUN))?)
}

/// The id in an entry's key.
fn id_in(entry: &Key) -> &str {
    entry.path().rsplit('/').next().unwrap_or_default()
}
