//! Bodies of the account service: users and tokens here, other nouns in files of their own.

mod application;
mod client;
mod collaborator;
mod component;
mod frequency_plan;
mod gateway;
mod listed_user;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use types::{FullName, Scope, Secret, Timestamp, UserId, Username};

pub use self::{
    application::{AccessKey, Application, NewAccessKey, NewApplication},
    client::{Client, ClientUpdate, NewClient},
    collaborator::{Collaborator, RightsBody},
    component::{Component, ComponentToken, NewComponent},
    frequency_plan::FrequencyPlan,
    gateway::{Gateway, GatewayUpdate, Location, Named, NewGateway, Owner, Router},
    listed_user::{ListedUser, UserDetails},
};
use super::json::{millis, null_is_default};

/// A registration.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewUser {
    /// Unique, and part of the login.
    pub username: Username,
    /// The e-mail address.
    #[schemars(email, length(max = 254))]
    pub email: String,
    /// Hashed before it is stored.
    #[schemars(length(min = 8, max = 128))]
    pub password: Secret,
}

/// The response to a registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// The e-mail address.
    pub email: String,
    /// The new user.
    pub user: User,
}

/// A user's profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct User {
    /// Unique, and part of the login.
    pub username: Username,
    /// The e-mail address.
    pub email: String,
    /// When the user registered.
    #[serde(with = "millis")]
    #[schemars(with = "Timestamp")]
    pub created: Timestamp,
    /// First and last name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: FullName,
    /// True if the address is confirmed.
    #[serde(default)]
    pub valid: bool,
    /// The immutable id.
    #[serde(rename = "_id")]
    pub id: UserId,
}

/// Changes of a profile; omitted members stay unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProfileChange {
    /// The username; the previous one stays reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<Username>,
    /// The e-mail address; a new one has to be confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    /// First and last name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<FullName>,
    /// The current password, required to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_password: Option<Secret>,
    /// The new password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 128))]
    pub password: Option<Secret>,
}

/// A token request, as a form or as JSON. Which members are required depends on the grant.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenRequest {
    /// `password`, `authorization_code` or `refresh_token`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_type: Option<String>,
    /// The username, or the application id in an exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password, or the access key in an exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    /// The authorization code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Secret>,
    /// The redirect URI of the authorization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The PKCE verifier of the authorization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_verifier: Option<Secret>,
    /// The refresh token of an earlier response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// The client id, unless it is sent as Basic credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client secret, unless it is sent as Basic credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The requested scopes: separated by spaces, or in JSON also a list. They are parsed later.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "list_or_words")]
    #[schemars(with = "Written")]
    pub scope: Option<Vec<String>>,
}

/// A token. Exchanges return only `access_token` and `expires_in`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenResponse {
    /// `bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_type: Option<String>,
    /// A signed JWT.
    pub access_token: Secret,
    /// Seconds until it expires.
    pub expires_in: u64,
    /// Used to request the next token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
}

/// Requests a token with fewer scopes, or for other entities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestrictRequest {
    /// The scopes of the new token.
    pub scope: Vec<Scope>,
}

/// A restricted token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RestrictResponse {
    /// A signed JWT.
    pub access_token: Secret,
}

/// The public key that verifies tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyDocument {
    /// The signature algorithm, `ES256`.
    pub algorithm: String,
    /// The key as PEM.
    pub key: String,
}

/// The body of every response that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// The HTTP status.
    pub code: u16,
    /// The error message.
    pub error: String,
}

/// A list of words, or the words separated by spaces.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Written {
    List(Vec<String>),
    Words(String),
}

/// Accepts `["a", "b"]` and `"a b"`.
fn list_or_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(Option::<Written>::deserialize(deserializer)?.map(|written| match written {
        Written::List(list) => list,
        Written::Words(words) => words.split_whitespace().map(str::to_owned).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_string};

    use super::*;

    #[test]
    fn a_scope_is_a_list_or_words() {
        for scope in [json!(["apps", "apps:a1"]), json!("apps  apps:a1")] {
            let request: TokenRequest = from_value(json!({ "scope": scope })).unwrap();
            assert_eq!(request.scope.unwrap(), ["apps", "apps:a1"]);
        }
        assert_eq!(from_value::<TokenRequest>(json!({"scope": null})).unwrap().scope, None);
    }

    #[test]
    fn an_exchange_answers_two_members() {
        let response =
            TokenResponse { token_type: None, access_token: Secret::new("t"), expires_in: 3600, refresh_token: None };
        assert_eq!(to_string(&response).unwrap(), r#"{"access_token":"t","expires_in":3600}"#);
    }

    #[test]
    fn nothing_secret_prints() {
        let request: TokenRequest = from_value(json!({
            "password": "hush", "code": "hush", "refresh_token": "hush", "client_secret": "hush",
        }))
        .unwrap();
        assert!(!format!("{request:?}").contains("hush"));
    }
}
