//! Each user's index of entities: those that the user created, and those that others shared.
//!
//! The index only lists candidates; the entity itself has the collaborators. There are two lists because anybody can
//! add to the second one: only created entities count against a user's limit, and shared ones never hide them.

use std::collections::BTreeSet;

use store::Key;
use types::UserId;

use super::Entity;
use crate::{Account, Error, Result, documents::Document, user::user_tag};

/// Maximum number of entities of one kind that a user can create, not counting deleted ones.
const MADE_MAX: usize = 1000;
/// Number of shared entities on one page.
const PAGE_LENGTH: usize = 1000;

/// A page of a user's entities, in order of their ids.
#[derive(Debug)]
pub(crate) struct EntityPage<E> {
    /// Including deleted ones.
    pub(crate) entities: Vec<E>,
    /// The id after which the next page starts, if there is one.
    pub(crate) next: Option<String>,
}

impl Account {
    /// The first page has all entities that the user created, and the first shared ones; further pages start after
    /// `after`.
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
        let found: Vec<Option<Document<E>>> = self.documents.read_all(&keys).await?;
        let accessible =
            found.into_iter().flatten().filter(|stored| stored.value.collaborators().contains_key(user_id));
        Ok(EntityPage { entities: accessible.map(|stored| stored.value).collect(), next })
    }

    /// Fails if the user has created as many entities as allowed.
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

    /// Adds an entity to those that the user created.
    pub(crate) async fn list_made<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&made_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Adds an entity to those that others shared with the user.
    pub(crate) async fn list_shared<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        self.documents.put(&shared_key::<E>(user_id, &id.to_string())?, &()).await
    }

    /// Adds an entity that is in neither list: a crash may have prevented it.
    pub(crate) async fn repair_index<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<()> {
        match self.listed::<E>(user_id, id).await?[..] {
            [] => self.list_shared::<E>(user_id, id).await,
            _ => Ok(()),
        }
    }

    /// The index entries of an entity.
    pub(crate) async fn listed<E: Entity>(&self, user_id: &UserId, id: &E::Id) -> Result<Vec<Document<()>>> {
        let id = id.to_string();
        let keys = [made_key::<E>(user_id, &id)?, shared_key::<E>(user_id, &id)?];
        Ok(self.documents.read_all(&keys).await?.into_iter().flatten().collect())
    }

    /// Removes deleted entities, and those that the user left, from the created ones. Returns whether there were any.
    async fn release_gone<E: Entity>(&self, user_id: &UserId, entries: &[Key]) -> Result<bool> {
        let keys = entries.iter().map(|key| E::key(id_in(key))).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<E>>> = self.documents.read_all(&keys).await?;
        let mut made = false;
        for (key, stored) in entries.iter().zip(found) {
            let accessible = stored.filter(|stored| stored.value.collaborators().contains_key(user_id));
            if accessible.as_ref().is_some_and(|stored| !stored.value.is_deleted()) {
                continue;
            }
            if accessible.is_some() && E::RESTORE.is_some() {
                self.documents.put(&shared_key::<E>(user_id, id_in(key))?, &()).await?;
            }
            self.documents.remove(key).await?;
            made = true;
        }
        Ok(made)
    }
}

/// The index entry of an entity that the user created; with an empty id, the prefix of all.
pub(super) fn made_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("made/{}/{id}", E::NOUN))?)
}

/// The index entry of a shared entity; with an empty id, the prefix of all.
fn shared_key<E: Entity>(user_id: &UserId, id: &str) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, &format!("{}/{id}", E::NOUN))?)
}

fn id_in(entry: &Key) -> &str {
    entry.path().rsplit('/').next().unwrap_or_default()
}
