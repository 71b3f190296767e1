//! Directories of all users, clients and components.
//!
//! An entry only says where to look. It is written before the record it refers to, so a crash cannot lose any; entries
//! without a record are skipped.

use std::str::FromStr;

use store::{Key, Tag};

use crate::{Account, Result};

/// Maximum length of a list. To get more, list those after the last one.
pub const LISTED_MAX: usize = 500;

/// What a directory lists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Roll {
    /// Usernames.
    Users,
    /// OAuth clients.
    Clients,
    /// Components.
    Components,
}

impl Roll {
    /// The key of an id's entry; an empty id gives the prefix.
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
    /// Adds an id to a directory. Repeating it has no effect.
    pub(crate) async fn enroll(&self, roll: Roll, id: &str) -> Result<()> {
        self.documents.put(&roll.entry(id)?, &()).await
    }

    /// Lists the ids in a directory that follow `after`, in order, at most [`LISTED_MAX`].
    pub(crate) async fn enrolled<Id: FromStr>(&self, roll: Roll, after: Option<&str>) -> Result<Vec<Id>> {
        let after = after.map(|id| roll.entry(id)).transpose()?;
        let entries = self.documents.keys_after(&roll.entry("")?, after.as_ref(), LISTED_MAX).await?;
        Ok(entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok()).collect())
    }
}
