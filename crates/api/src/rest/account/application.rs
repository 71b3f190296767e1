//! Applications and their access keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{AppEui, AppId, ApplicationRight, Timestamp};

use super::Collaborator;
use crate::rest::json::{millis, null_is_default};

/// An application, as far as the caller may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Unique, also after deletion.
    pub id: AppId,
    /// A name for people.
    pub name: String,
    /// The EUIs of the application.
    #[serde(default, deserialize_with = "null_is_default")]
    pub euis: Vec<AppEui>,
    /// When it was created.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub created: Timestamp,
    /// The caller's rights.
    #[serde(default)]
    pub rights: Vec<ApplicationRight>,
    /// The collaborators, for callers who may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collaborators: Option<Vec<Collaborator<ApplicationRight>>>,
    /// The access keys, for callers who may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_keys: Option<Vec<AccessKey>>,
    /// When it was deleted, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis::optional")]
    #[schemars(with = "Timestamp")]
    pub deleted: Option<Timestamp>,
}

/// A new application; other members are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewApplication {
    /// The id, which is never reused.
    pub id: AppId,
    /// A name for people.
    #[schemars(length(max = 200))]
    pub name: String,
    /// Existing EUIs; without any, it is assigned one.
    #[schemars(inner(pattern(r"^[0-9A-Fa-f]{16}$")), extend("uniqueItems" = true))]
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub euis: Vec<AppEui>,
    /// Access keys to create with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub access_keys: Vec<NewAccessKey>,
}

/// An access key of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessKey {
    /// A name for people, unique in the application.
    pub name: String,
    /// The key; omitted for callers without all of its rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<types::AccessKey>,
    /// The id: 24 hexadecimal digits.
    #[serde(default, rename = "_id", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The rights of the key.
    pub rights: Vec<ApplicationRight>,
}

/// A new access key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewAccessKey {
    /// A name for people.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The rights of the key.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub rights: Vec<ApplicationRight>,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn an_application_reads_and_writes_as_the_old_service_did() {
        let body = json!({
            "id": "my-app", "name": "My app", "euis": ["70B3D57ED0000001"], "created": "2017-01-17T14:47:09.740Z",
            "rights": ["settings", "messages:up:r"],
            "collaborators": [{"username": "alice", "email": "alice@example.com", "rights": ["devices"]}],
            "access_keys": [{"name": "default key", "key": "issuer.secret", "_id": "5a", "rights": ["devices"]}],
        });
        let application: Application = from_value(body.clone()).unwrap();
        assert_eq!(to_value(&application).unwrap(), body);
    }

    #[test]
    fn null_euis_are_none() {
        let new: NewApplication = from_value(json!({"id": "my-app", "name": "", "euis": null, "more": 1})).unwrap();
        assert!(new.euis.is_empty() && new.access_keys.is_empty());
    }
}
