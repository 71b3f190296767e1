//! Access keys of applications.

use api::rest::account::{AccessKey, NewAccessKey};
use reqwest::Method;
use types::{AppId, Credential};

use super::AccountClient;
use crate::Result;

impl AccountClient {
    /// Lists the access keys of an application. Keys with more rights than the caller come without the secret.
    pub async fn access_keys(&self, credential: &Credential, app_id: &AppId) -> Result<Vec<AccessKey>> {
        self.http.json(self.authorized(Method::GET, &keys(app_id), credential)).await
    }

    /// Returns an access key by name.
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

    /// Deletes an access key by name.
    pub async fn delete_access_key(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<()> {
        let path = [&keys(app_id)[..], &[name]].concat();
        self.http.done(self.authorized(Method::DELETE, &path, credential)).await
    }
}

fn keys(app_id: &AppId) -> [&str; 3] {
    ["applications", app_id.as_str(), "access-keys"]
}
