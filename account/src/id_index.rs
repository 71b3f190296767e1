//! The rolls: which users, clients and components there are.
//!
//! A roll only says where to look. It is written before what it names, so nothing is missing after a crash, and what
//! is not there, or not any more, is passed over.

use std::str::FromStr;

use store::{Key, Tag};

use crate::{Account, Result};

/// The most of one sort that are listed at once; who wants more asks for those after the last one.
pub const LISTED_MAX: usize = 500;

/// What there is a roll of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Roll {
    /// User names.
    Users,
    /// OAuth clients.
    Clients,
    /// Components.
    Components,
}

impl Roll {
    /// Where the entry of an id is; that of an empty one is the prefix of all.
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
    /// Puts an id on a roll; a second time changes nothing.
    pub(crate) async fn enroll(&self, roll: Roll, id: &str) -> Result<()> {
        self.documents.put(&roll.entry(id)?, &()).await
    }

    /// The ids of a roll in their order, from behind `after` on; [`LISTED_MAX`] at most.
    pub(crate) async fn enrolled<Id: FromStr>(&self, roll: Roll, after: Option<&str>) -> Result<Vec<Id>> {
        let after = after.map(|id| roll.entry(id)).transpose()?;
        let entries = self.documents.keys_after(&roll.entry("")?, after.as_ref(), LISTED_MAX).await?;
        Ok(entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok()).collect())
    }
}
