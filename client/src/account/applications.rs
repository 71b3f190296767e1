//! Applications and their EUIs.

use api::rest::account::{Application, NewApplication};
use reqwest::Method;
use serde_json::json;
use types::{AppEui, AppId, Credential};

use super::{AccountClient, authorize};
use crate::Result;

impl AccountClient {
    /// The applications of the bearer.
    pub async fn applications(&self, credential: &Credential) -> Result<Vec<Application>> {
        self.http.json(self.authorized(Method::GET, &["applications"], credential)).await
    }

    /// The applications of the bearer, and those that were deleted.
    pub async fn applications_and_deleted(&self, credential: &Credential) -> Result<Vec<Application>> {
        let mut url = self.http.url(&["api", "v2", "applications"]);
        url.set_query(Some("deleted=1"));
        self.http.json(authorize(self.http.request_to(Method::GET, url), credential)).await
    }

    /// One application.
    pub async fn application(&self, credential: &Credential, app_id: &AppId) -> Result<Application> {
        self.http.json(self.authorized(Method::GET, &["applications", app_id.as_str()], credential)).await
    }

    /// Creates an application; its answer has an EUI and an access key.
    pub async fn create_application(
        &self,
        credential: &Credential,
        application: &NewApplication,
    ) -> Result<Application> {
        self.http.json(self.authorized(Method::POST, &["applications"], credential).json(application)).await
    }

    /// Gives an application another name; its id stays.
    pub async fn rename_application(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<()> {
        let request = self.authorized(Method::PATCH, &["applications", app_id.as_str()], credential);
        self.http.done(request.json(&json!({ "name": name }))).await
    }

    /// Deletes an application; its id stays taken.
    pub async fn delete_application(&self, credential: &Credential, app_id: &AppId) -> Result<()> {
        self.http.done(self.authorized(Method::DELETE, &["applications", app_id.as_str()], credential)).await
    }

    /// Takes the deletion of an application back.
    pub async fn restore_application(&self, credential: &Credential, app_id: &AppId) -> Result<()> {
        let path = ["applications", app_id.as_str(), "restore"];
        self.http.done(self.authorized(Method::POST, &path, credential)).await
    }

    /// The EUIs at which an application is reachable.
    pub async fn euis(&self, credential: &Credential, app_id: &AppId) -> Result<Vec<AppEui>> {
        self.http.json(self.authorized(Method::GET, &euis(app_id), credential)).await
    }

    /// Gives an application a new EUI of the network's block.
    pub async fn create_eui(&self, credential: &Credential, app_id: &AppId) -> Result<AppEui> {
        #[derive(serde::Deserialize)]
        struct Created {
            eui: AppEui,
        }
        let created: Created = self.http.json(self.authorized(Method::POST, &euis(app_id), credential)).await?;
        Ok(created.eui)
    }

    /// Adds an EUI that belongs to the owner of an application.
    pub async fn add_eui(&self, credential: &Credential, app_id: &AppId, eui: AppEui) -> Result<()> {
        let eui = eui.to_string();
        let path = [&euis(app_id)[..], &[&eui]].concat();
        self.http.done(self.authorized(Method::PUT, &path, credential)).await
    }

    /// Takes an EUI away from an application.
    pub async fn delete_eui(&self, credential: &Credential, app_id: &AppId, eui: AppEui) -> Result<()> {
        let eui = eui.to_string();
        let path = [&euis(app_id)[..], &[&eui]].concat();
        self.http.done(self.authorized(Method::DELETE, &path, credential)).await
    }
}

fn euis(app_id: &AppId) -> [&str; 3] {
    ["applications", app_id.as_str(), "euis"]
}
