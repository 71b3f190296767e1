//! Applications and their EUIs.

use api::rest::account::{Application, NewApplication, Owner};
use reqwest::Method;
use serde_json::json;
use types::{AppEui, AppId, ApplicationRight, Credential, Grant, Username};

use super::{AccountClient, authorize};
use crate::Result;

impl AccountClient {
    /// Lists the caller's applications.
    pub async fn applications(&self, credential: &Credential) -> Result<Vec<Application>> {
        self.http.json(self.authorized(Method::GET, &["applications"], credential)).await
    }

    /// Lists the caller's applications, including deleted ones.
    pub async fn applications_and_deleted(&self, credential: &Credential) -> Result<Vec<Application>> {
        let mut url = self.http.url(&["api", "v2", "applications"]);
        url.set_query(Some("deleted=1"));
        self.http.json(authorize(self.http.request_to(Method::GET, url), credential)).await
    }

    /// Returns an application.
    pub async fn application(&self, credential: &Credential, app_id: &AppId) -> Result<Application> {
        self.http.json(self.authorized(Method::GET, &["applications", app_id.as_str()], credential)).await
    }

    /// Creates an application. The result includes its EUI and access key.
    pub async fn create_application(
        &self,
        credential: &Credential,
        application: &NewApplication,
    ) -> Result<Application> {
        self.http.json(self.authorized(Method::POST, &["applications"], credential).json(application)).await
    }

    /// Renames an application; its id does not change.
    pub async fn rename_application(&self, credential: &Credential, app_id: &AppId, name: &str) -> Result<()> {
        let request = self.authorized(Method::PATCH, &["applications", app_id.as_str()], credential);
        self.http.done(request.json(&json!({ "name": name }))).await
    }

    /// Returns the owner of an application, who is charged for its use.
    ///
    /// Needs any right to the application, or the token of one of the operator's components.
    pub async fn application_owner(&self, credential: &Credential, app_id: &AppId) -> Result<Owner> {
        self.http.json(self.authorized(Method::GET, &["applications", app_id.as_str(), "owner"], credential)).await
    }

    /// Returns the rights to an application that a grant still gives.
    ///
    /// Needs the token of one of the operator's components.
    pub async fn granted_rights(
        &self,
        credential: &Credential,
        app_id: &AppId,
        grant: &Grant,
    ) -> Result<Vec<ApplicationRight>> {
        let mut url = self.http.url(&["api", "v2", "applications", app_id.as_str(), "granted-rights"]);
        match grant {
            Grant::Owner => {}
            Grant::Key { id } => _ = url.query_pairs_mut().append_pair("key", id),
            Grant::User { id, client } => {
                let client = client.as_ref().map(|client| ("client", client.as_str()));
                url.query_pairs_mut().extend_pairs([("user", id.as_str())].into_iter().chain(client));
            }
        }
        self.http.json(authorize(self.http.request_to(Method::GET, url), credential)).await
    }

    /// Hands an application over to a collaborator who has all rights; only its owner can.
    pub async fn transfer_application(&self, credential: &Credential, app_id: &AppId, owner: &Username) -> Result<()> {
        let request = self.authorized(Method::PATCH, &["applications", app_id.as_str()], credential);
        self.http.done(request.json(&json!({ "owner": owner }))).await
    }

    /// Deletes an application; its id is never reused.
    pub async fn delete_application(&self, credential: &Credential, app_id: &AppId) -> Result<()> {
        self.http.done(self.authorized(Method::DELETE, &["applications", app_id.as_str()], credential)).await
    }

    /// Restores a deleted application.
    pub async fn restore_application(&self, credential: &Credential, app_id: &AppId) -> Result<()> {
        let path = ["applications", app_id.as_str(), "restore"];
        self.http.done(self.authorized(Method::POST, &path, credential)).await
    }

    /// Lists the EUIs of an application.
    pub async fn euis(&self, credential: &Credential, app_id: &AppId) -> Result<Vec<AppEui>> {
        self.http.json(self.authorized(Method::GET, &euis(app_id), credential)).await
    }

    /// Assigns a new EUI from the network's block to an application.
    pub async fn create_eui(&self, credential: &Credential, app_id: &AppId) -> Result<AppEui> {
        #[derive(serde::Deserialize)]
        struct Created {
            eui: AppEui,
        }
        let created: Created = self.http.json(self.authorized(Method::POST, &euis(app_id), credential)).await?;
        Ok(created.eui)
    }

    /// Adds an EUI that the caller owns to an application.
    pub async fn add_eui(&self, credential: &Credential, app_id: &AppId, eui: AppEui) -> Result<()> {
        let eui = eui.to_string();
        let path = [&euis(app_id)[..], &[&eui]].concat();
        self.http.done(self.authorized(Method::PUT, &path, credential)).await
    }

    /// Removes an EUI from an application.
    pub async fn delete_eui(&self, credential: &Credential, app_id: &AppId, eui: AppEui) -> Result<()> {
        let eui = eui.to_string();
        let path = [&euis(app_id)[..], &[&eui]].concat();
        self.http.done(self.authorized(Method::DELETE, &path, credential)).await
    }
}

fn euis(app_id: &AppId) -> [&str; 3] {
    ["applications", app_id.as_str(), "euis"]
}
