//! Usernames, which belong to the same user permanently.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{UserId, Username};

use super::{UserRecord, taken, user_key};
use crate::{
    Account, Error, Result,
    documents::{Document, id_index::IdIndex},
};

/// Maximum number of further names that a user can take. They stay reserved permanently.
const NAMES_TAKEN_MAX: u32 = 10;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NameRecord {
    pub(crate) user_id: UserId,
}

impl Account {
    pub(crate) async fn find_user(&self, username: &Username) -> Result<Option<UserRecord>> {
        let Some(name) = self.documents.read::<NameRecord>(&name_key(username)?).await? else { return Ok(None) };
        // An abandoned name stays reserved, but nobody can be found by it.
        Ok(self.user(&name.value.user_id).await?.filter(|user| user.username == *username))
    }

    /// The users with these names, in the same order, without names that nobody has now.
    pub(crate) async fn users_named(&self, names: &[Username]) -> Result<Vec<UserRecord>> {
        let keys = names.iter().map(name_key).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<NameRecord>>> = self.documents.read_all(&keys).await?;
        let known = names.iter().zip(found).filter_map(|(name, record)| Some((name, record?.value.user_id)));
        let (known, user_ids): (Vec<_>, Vec<_>) = known.unzip();
        let keys = user_ids.iter().map(user_key).collect::<Result<Vec<_>>>()?;
        let users: Vec<Option<Document<UserRecord>>> = self.documents.read_all(&keys).await?;
        let users = known.into_iter().zip(users).filter_map(|(name, user)| Some((name, user?.value)));
        Ok(users.filter(|(name, user)| user.username == **name).map(|(_, user)| user).collect())
    }

    /// Like [`Account::find_user`], but fails if there is none.
    pub(crate) async fn require_user(&self, username: &Username) -> Result<UserRecord> {
        let user = self.find_user(username).await?;
        user.ok_or_else(|| Error::NotFound { what: "user", id: username.to_string() })
    }

    /// Reserves a further name for a user. Fails if it belongs to another user, or this one has taken too many.
    pub(crate) async fn take_name(&self, username: &Username, user: &UserRecord) -> Result<()> {
        if self.is_free(username).await? {
            // Counted first: after a crash, the user can take one name fewer rather than one more.
            self.change_user(&user.id, UserRecord::count_name).await?;
        }
        if self.reserve_name(username, &user.id).await? { Ok(()) } else { Err(taken(username)) }
    }

    /// Reserves a name for a user. Returns false if it belongs to another user.
    pub(crate) async fn reserve_name(&self, username: &Username, user_id: &UserId) -> Result<bool> {
        let key = name_key(username)?;
        if self.owner_of_name(&key).await?.is_none() {
            self.add_to_index(IdIndex::Users, username.as_str()).await?;
            // Another user may be faster.
            self.documents.create(&key, &NameRecord { user_id: user_id.clone() }).await?;
        }
        Ok(self.owner_of_name(&key).await?.as_ref() == Some(user_id))
    }

    /// Returns true if the name belongs to nobody.
    pub(crate) async fn is_free(&self, username: &Username) -> Result<bool> {
        Ok(self.owner_of_name(&name_key(username)?).await?.is_none())
    }

    async fn owner_of_name(&self, key: &Key) -> Result<Option<UserId>> {
        Ok(self.documents.read::<NameRecord>(key).await?.map(|name| name.value.user_id))
    }
}

impl UserRecord {
    fn count_name(&mut self) -> Result<()> {
        if self.names_taken >= NAMES_TAKEN_MAX {
            let must = "must be one of your previous names: the limit is ten new ones";
            return Err(Error::Invalid { what: "username", must });
        }
        self.names_taken += 1;
        Ok(())
    }
}

pub(crate) fn name_key(username: &Username) -> Result<Key> {
    Ok(Key::new(&Tag::named("n", username.as_str())?, "user")?)
}
