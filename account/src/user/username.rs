//! Usernames: each belongs to one user forever.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{UserId, Username};

use super::UserRecord;
use crate::{Account, Error, Result, id_index::IdIndex};

/// How many other usernames a user may take; each stays reserved forever.
const NAMES_TAKEN_MAX: u32 = 10;

/// Whom a user name belongs to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NameRecord {
    pub(crate) user_id: UserId,
}

impl Account {
    /// The user with this name.
    pub(crate) async fn find_user(&self, username: &Username) -> Result<Option<UserRecord>> {
        let Some(name) = self.documents.read::<NameRecord>(&name_key(username)?).await? else { return Ok(None) };
        // A name that its user gave up stays reserved, but refers to nobody.
        Ok(self.user(&name.value.user_id).await?.filter(|user| user.username == *username))
    }

    /// The user with this name, who must be there.
    pub(crate) async fn require_user(&self, username: &Username) -> Result<UserRecord> {
        let user = self.find_user(username).await?;
        user.ok_or_else(|| Error::NotFound { what: "user", id: username.to_string() })
    }

    /// Reserves a username; fails if another user has it, or the user has taken too many.
    pub(crate) async fn take_name(&self, username: &Username, user: &UserRecord) -> Result<()> {
        let key = name_key(username)?;
        if self.owner_of_name(&key).await?.is_none() {
            // Count first: if this is interrupted, the user has one name fewer left, never one more.
            self.change_user(&user.id, UserRecord::count_name).await?;
            self.add_to_index(IdIndex::Users, username.as_str()).await?;
            self.documents.create(&key, &NameRecord { user_id: user.id.clone() }).await?;
        }
        match self.owner_of_name(&key).await? {
            Some(owner) if owner == user.id => Ok(()),
            _ => Err(Error::Taken { what: "user name", id: username.to_string() }),
        }
    }

    async fn owner_of_name(&self, key: &Key) -> Result<Option<UserId>> {
        Ok(self.documents.read::<NameRecord>(key).await?.map(|name| name.value.user_id))
    }
}

impl UserRecord {
    /// Counts another name; fails if there are too many.
    fn count_name(&mut self) -> Result<()> {
        if self.names_taken >= NAMES_TAKEN_MAX {
            let must = "must be one of those that you had before: nobody takes more than ten others";
            return Err(Error::Invalid { what: "user name", must });
        }
        self.names_taken += 1;
        Ok(())
    }
}

/// Where a name lies.
pub(crate) fn name_key(username: &Username) -> Result<Key> {
    Ok(Key::new(&Tag::named("n", username.as_str())?, "user")?)
}
