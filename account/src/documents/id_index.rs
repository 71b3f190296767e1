//! Indexes of all users, OAuth clients and components, which only the operator lists.
//!
//! An id is indexed before its record is written, so a crash leaves at most an entry without a record. Readers skip
//! such entries.

use std::str::FromStr;

use store::{Key, Tag};

use crate::{Account, Result};

/// Maximum number of entries that one list call returns.
pub const LISTED_MAX: usize = 500;

#[derive(Clone, Copy, Debug)]
pub(crate) enum IdIndex {
    Users,
    Clients,
    Components,
}

impl IdIndex {
    /// The key of an id's entry; with an empty id, the prefix of all entries.
    fn entry(self, id: &str) -> Result<Key> {
        let name = match self {
            Self::Users => "users",
            Self::Clients => "clients",
            Self::Components => "components",
        };
        Ok(Key::new(&Tag::named("oo", name)?, &format!("id/{id}"))?)
    }
}

impl Account {
    /// Adds an id to an index. Idempotent.
    pub(crate) async fn add_to_index(&self, index: IdIndex, id: &str) -> Result<()> {
        self.documents.put(&index.entry(id)?, &()).await
    }

    /// Up to [`LISTED_MAX`] ids of an index, in order, starting after `after`.
    pub(crate) async fn ids_in_index<Id: FromStr>(&self, index: IdIndex, after: Option<&str>) -> Result<Vec<Id>> {
        let after = after.map(|id| index.entry(id)).transpose()?;
        let entries = self.documents.keys_after(&index.entry("")?, after.as_ref(), LISTED_MAX).await?;
        Ok(entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok()).collect())
    }
}
