//! Registering users, and the caller's profile.

use api::rest::account::{NewUser, ProfileChange, Registered, User};
use reqwest::Method;
use types::Credential;

use super::AccountClient;
use crate::Result;

impl AccountClient {
    /// Registers a user.
    pub async fn register_user(&self, user: &NewUser) -> Result<Registered> {
        self.http.json(self.http.request(Method::POST, &["api", "v2", "users"]).json(user)).await
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
