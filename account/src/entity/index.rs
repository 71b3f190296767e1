//! Where a user's entities are looked for: those that the user made, and those that others let the user see.
//!
//! An index only says where to look; the entity says who collaborates on it. The two are apart because anybody can add
//! to the second one: only what a user made counts against the user, and it is never behind what others added.

use std::collections::BTreeSet;

use store::Key;
use types::UserId;

use super::Entity;
use crate::{Account, Error, Result, documents::Stored, user::user_tag};

/// The most entities of one sort that one user made and did not delete.
const MADE_MAX: usize = 1000;
/// How many of those that others let a user see are listed at once.
const PAGE_LENGTH: usize = 1000;

/// Some entities of a user, in the order of their ids.
#[derive(Debug)]
pub(crate) struct Listing<E> {
    /// The entities, deleted ones included.
    pub(crate) entities: Vec<E>,
    /// Behind which id there are more.
    pub(crate) next: Option<String>,
}

impl Account {
    /// The entities of a user: all that the user made with the first others, or the next others from `after` on.
    pub(crate) async fn entities_of<E: Entity>(&self, user_id: &UserId, after: Option<&str>) -> Result<Listing<E>> {
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
        Ok(Listing { entities: own.map(|stored| stored.value).collect(), next })
    }

    /// Refuses one more entity to a user who made as many as they may.
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

    /// Counts an entity among those that a user made, and lists it there.
    pub(crate) async fn list_made<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&made_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Lists an entity among those that others let a user see.
    pub(crate) async fn list_shared<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&shared_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Lists it there if it is nowhere: whoever wrote the entity may have been stopped before the index.
    pub(crate) async fn repair_index<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        match self.listed::<E>(user_id, id).await?[..] {
            [] => self.list_shared::<E>(user_id, id).await,
            _ => Ok(()),
        }
    }

    /// What lists an entity among those of a user.
    pub(crate) async fn listed<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<Vec<Stored<()>>> {
        let id = id.to_string();
        let keys = [made_key::<E>(user_id, &id)?, shared_key::<E>(user_id, &id)?];
        Ok(self.documents.read_all(&keys).await?.into_iter().flatten().collect())
    }

    /// Stops counting what is deleted or was left to others; says whether there was any such thing.
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

/// What lists an entity that a user made; without an id, the prefix of all.
fn made_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("made/{}/{id}", E::NOUN))?)
}

/// What lists an entity that others let a user see; without an id, the prefix of all.
fn shared_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("{}/{id}", E::NOUN))?)
}

/// The id that an entry lists.
fn id_in(entry: &Key) -> &str {
    entry.path().rsplit('/').next().unwrap_or_default()
}
