//! Registering users, and the caller's profile; for operators, all users.

use api::rest::account::{ListedUser, NewUser, ProfileChange, Registered, User, UserDetails};
use reqwest::Method;
use types::{Credential, UserId, Username};

use super::{AccountClient, authorize};
use crate::Result;

/// A page of users, in order of their names.
#[derive(Clone, Debug)]
pub struct UserPage {
    /// The users. There may be none although pages follow.
    pub users: Vec<ListedUser>,
    /// The name after which the next page starts; none on the last one.
    pub next: Option<Username>,
}

impl AccountClient {
    /// Registers a user.
    pub async fn register_user(&self, user: &NewUser) -> Result<Registered> {
        self.http.json(self.http.request(Method::POST, &["api", "v2", "users"]).json(user)).await
    }

    /// Lists the users after this name whose name, id or e-mail address has the text. Only for operators.
    pub async fn users(&self, credential: &Credential, search: &str, after: Option<&Username>) -> Result<UserPage> {
        let mut url = self.http.url(&["api", "v2", "users"]);
        let search = Some(("search", search)).filter(|(_, search)| !search.is_empty());
        let start = after.map(|after| ("after", after.as_str()));
        url.query_pairs_mut().extend_pairs(search.into_iter().chain(start));
        let (users, next) = self.http.page(authorize(self.http.request_to(Method::GET, url), credential)).await?;
        let next =
            next.map(|name| name.parse::<Username>().map_err(|error| self.http.unreadable(error))).transpose()?;
        // Who follows the pages must come to an end, whatever answers.
        let next = next.filter(|next| after.is_none_or(|after| next > after));
        Ok(UserPage { users, next })
    }

    /// Returns a user with their applications and gateways. Only for operators.
    pub async fn user(&self, credential: &Credential, user_id: &UserId) -> Result<UserDetails> {
        self.http.json(self.authorized(Method::GET, &["users", user_id.as_str()], credential)).await
    }

    /// Returns the caller's profile.
    pub async fn me(&self, credential: &Credential) -> Result<User> {
        self.http.json(self.authorized(Method::GET, &["users", "me"], credential)).await
    }

    /// Changes the caller's profile. A new password ends the caller's other logins, and this token.
    pub async fn update_me(&self, credential: &Credential, change: &ProfileChange) -> Result<()> {
        self.http.done(self.authorized(Method::PATCH, &["users", "me"], credential).json(change)).await
    }
}
