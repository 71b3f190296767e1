//! Listing and creating users; `user/profile.rs` disables them and resets passwords.

use api::rest::account::{ListedUser, NewUser, User};
use server::ledger::Owner;
use types::{UserId, Username};

use crate::{
    Account, Result,
    documents::id_index::IdIndex,
    user::{UserRecord, user_key},
};

impl Account {
    /// All users after the name `after`, in order; [`LISTED_MAX`](crate::LISTED_MAX) at most.
    pub async fn list_users(&self, after: Option<&Username>) -> Result<Vec<ListedUser>> {
        let names = self.ids_in_index::<Username>(IdIndex::Users, after.map(Username::as_str)).await?;
        Ok(self.users_named(&names).await?.into_iter().map(ListedUser::from).collect())
    }

    /// Returns a user by name.
    pub async fn show_user(&self, username: &Username) -> Result<ListedUser> {
        Ok(self.require_user(username).await?.into())
    }

    /// The name of a user; none if there is no such user.
    pub async fn username_of(&self, user_id: &UserId) -> Result<Option<Username>> {
        Ok(self.documents.read::<UserRecord>(&user_key(user_id)?).await?.map(|user| user.value.username))
    }

    /// Creates a user with a confirmed address, without sending mail.
    pub async fn add_user(&self, new: NewUser) -> Result<User> {
        let change = self.audit.change("user registered", &"operator", &new.username)?;
        let operator = Owner::Component("operator".into());
        let user =
            change.run_on(self.create_user(new, &operator), |user| format!("{} {}", user.id, user.username)).await?;
        self.set_confirmed(&user.id).await
    }

    /// Marks a user's address as confirmed.
    pub async fn confirm_user(&self, username: &Username) -> Result<User> {
        let user_id = self.require_user(username).await?.id;
        self.set_confirmed(&user_id).await
    }

    async fn set_confirmed(&self, user_id: &UserId) -> Result<User> {
        let confirm = |user: &mut UserRecord| {
            user.valid = true;
            Ok(())
        };
        let change = self.audit.change("address confirmed", &"operator", user_id)?;
        Ok(change.run(self.change_user(user_id, confirm)).await?.into())
    }
}
