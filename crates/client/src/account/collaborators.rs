//! Collaborators of applications and gateways, and their rights.

use api::rest::account::Collaborator;
use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use types::{AppId, ApplicationRight, Credential, GatewayId, GatewayRight, Username};

use super::AccountClient;
use crate::Result;

/// The id of an entity with collaborators.
pub trait WithCollaborators {
    /// The rights to it.
    type Right: Copy + Serialize + DeserializeOwned;

    /// The first two segments of its path.
    #[doc(hidden)]
    fn path(&self) -> [&str; 2];
}

impl WithCollaborators for AppId {
    type Right = ApplicationRight;

    fn path(&self) -> [&str; 2] {
        ["applications", self.as_str()]
    }
}

impl WithCollaborators for GatewayId {
    type Right = GatewayRight;

    fn path(&self) -> [&str; 2] {
        ["gateways", self.as_str()]
    }
}

impl AccountClient {
    /// Returns the caller's rights.
    pub async fn rights<T: WithCollaborators>(&self, credential: &Credential, of: &T) -> Result<Vec<T::Right>> {
        let path = [&of.path()[..], &["rights"]].concat();
        self.http.json(self.authorized(Method::GET, &path, credential)).await
    }

    /// Lists the collaborators.
    pub async fn collaborators<T: WithCollaborators>(
        &self,
        credential: &Credential,
        of: &T,
    ) -> Result<Vec<Collaborator<T::Right>>> {
        let path = [&of.path()[..], &["collaborators"]].concat();
        self.http.json(self.authorized(Method::GET, &path, credential)).await
    }

    /// Returns the rights of a user.
    pub async fn collaborator<T: WithCollaborators>(
        &self,
        credential: &Credential,
        of: &T,
        username: &Username,
    ) -> Result<Collaborator<T::Right>> {
        self.http.json(self.authorized(Method::GET, &path(of, username), credential)).await
    }

    /// Replaces the rights of a user.
    pub async fn set_collaborator<T: WithCollaborators>(
        &self,
        credential: &Credential,
        of: &T,
        username: &Username,
        rights: &[T::Right],
    ) -> Result<()> {
        self.http.done(self.authorized(Method::PUT, &path(of, username), credential).json(rights)).await
    }

    /// Removes a collaborator.
    pub async fn delete_collaborator<T: WithCollaborators>(
        &self,
        credential: &Credential,
        of: &T,
        username: &Username,
    ) -> Result<()> {
        self.http.done(self.authorized(Method::DELETE, &path(of, username), credential)).await
    }
}

fn path<'a>(of: &'a impl WithCollaborators, username: &'a Username) -> [&'a str; 4] {
    let [sort, id] = of.path();
    [sort, id, "collaborators", username.as_str()]
}
