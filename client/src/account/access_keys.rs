//! Access keys of applications.

use api::rest::account::{AccessKey, NewAccessKey};
use reqwest::Method;
use types::{AppId, Credential};

use super::AccountClient;
use crate::Result;

impl AccountClient {
    /// The access keys of an application; those with more rights than the bearer come without the key itself.
    pub async fn access_keys(&self, credential: &Credential, app_id: &AppId) -> Result<Vec<AccessKey>> {
        self.http.json(self.authorized(Method::GET, &keys(app_id), credential)).await
    }

    /// The access key of this name.
    pub async fn access_key(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<AccessKey> {
        let path = [&keys(app_id)[..], &[name]].concat();
        self.http.json(self.authorized(Method::GET, &path, credential)).await
    }

    /// Creates an access key.
    pub async fn add_access_key(
        &self,
        credential: &Credential,
        app_id: &AppId,
        key: &NewAccessKey,
    ) -> Result<AccessKey> {
        self.http.json(self.authorized(Method::POST, &keys(app_id), credential).json(key)).await
    }

    /// Deletes the access key of this name.
    pub async fn delete_access_key(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<()> {
        let path = [&keys(app_id)[..], &[name]].concat();
        self.http.done(self.authorized(Method::DELETE, &path, credential)).await
    }
}

fn keys(app_id: &AppId) -> [&str; 3] {
    ["applications", app_id.as_str(), "access-keys"]
}
