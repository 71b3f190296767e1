//! OAuth clients.

mod registered;
pub(crate) mod rules;
pub(crate) mod settings;
mod update;

use std::{fmt::Display, net::IpAddr, str::FromStr};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, UserId};

use self::settings::ClientSettings;
use super::{Basic, error_code::OAuthErrorCode, parse_scope};
use crate::{
    Account, Error, Result,
    documents::id_index::IdIndex,
    metrics,
    seal::{KeyedHash, Sealed},
    user::{consent::ClientRevision, rate_limit::rate_limit_address},
};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// The HMAC of its secret; a public client has none.
    pub(crate) secret: Option<KeyedHash>,
    /// True if it is a first-party client, which may ask users for their password.
    pub(crate) first_party: bool,
    /// The general scopes that it may request.
    pub(crate) scope: Vec<Scope>,
    /// Must match exactly. Without any, the client cannot use codes.
    #[serde(default)]
    pub(crate) redirect_uris: Vec<String>,
    /// True if it is a v2 client, which sends neither a code challenge nor a redirect URI with the code.
    #[serde(default)]
    pub(crate) legacy: bool,
    /// The user who registered it; the operator's clients have none.
    #[serde(default)]
    pub(crate) owner: Option<UserId>,
    /// The sealed secret, to show it to the owner.
    #[serde(default)]
    pub(crate) sealed: Option<Sealed>,
    #[serde(default)]
    pub(crate) description: String,
    /// Number of changes that users are shown; see [`Client::revision`].
    #[serde(default)]
    pub(crate) revision: u32,
    #[serde(default = "GrantType::all")]
    pub(crate) grants: Vec<GrantType>,
    #[serde(default, rename = "standing")]
    pub(crate) status: ClientStatus,
}

/// The operator's decision about a client. Only approved clients get tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientStatus {
    Undecided,
    #[default]
    #[serde(rename = "accepted")]
    Approved,
    Rejected,
    Deleted,
}

/// The grant types of OAuth 2.0 that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrantType {
    Password,
    AuthorizationCode,
    RefreshToken,
}

impl GrantType {
    pub(crate) fn all() -> Vec<Self> {
        vec![Self::Password, Self::AuthorizationCode, Self::RefreshToken]
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
        }
    }
}

impl FromStr for GrantType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::all().into_iter().find(|grant| grant.as_str() == text);
        let reason = "grant_type must be password, authorization_code or refresh_token";
        found.ok_or_else(|| Error::oauth(OAuthErrorCode::UnsupportedGrantType, reason))
    }
}

impl Client {
    /// An approved client of the operator's, which may use every grant, but has neither secret nor scope.
    pub(crate) fn approved(id: ClientId) -> Self {
        Self {
            id,
            secret: None,
            first_party: false,
            scope: Vec::new(),
            redirect_uris: Vec::new(),
            legacy: false,
            owner: None,
            sealed: None,
            description: String::new(),
            revision: 0,
            grants: GrantType::all(),
            status: ClientStatus::Approved,
        }
    }

    /// Returns true if it has no secret, so that anybody can use its id.
    pub(crate) fn is_public(&self) -> bool {
        self.secret.is_none()
    }

    /// Returns the revision that a consent is bound to: a user who was shown an earlier one must be asked again.
    pub(crate) fn revision(&self) -> ClientRevision<'_> {
        ClientRevision { id: &self.id, number: self.revision }
    }

    /// Refuses clients that are not approved, or may not use this grant type.
    pub(crate) fn check_grant(&self, grant: GrantType) -> Result<()> {
        let refuse = |reason| Err(Error::oauth(OAuthErrorCode::UnauthorizedClient, reason));
        match self.status {
            ClientStatus::Approved if self.grants.contains(&grant) => Ok(()),
            ClientStatus::Approved => refuse("this client is not registered for this grant"),
            _ => refuse("this client is not approved: ask the operator of the network"),
        }
    }

    /// The requested scopes, if the client may have them, or all of its scopes if none are requested.
    pub(crate) fn scope_for(&self, asked: Option<&[String]>) -> Result<Vec<Scope>> {
        let asked = match asked {
            Some(asked) if !asked.is_empty() => parse_scope(asked).map_err(super::to_oauth_error)?,
            _ => return Ok(self.scope.clone()),
        };
        match asked.iter().find(|scope| !self.scope.contains(&scope.general())) {
            Some(scope) => Err(Error::oauth(
                OAuthErrorCode::InvalidScope,
                format!("this client may not ask for the scope `{scope}`"),
            )),
            None => Ok(asked),
        }
    }
}

impl Account {
    /// Creates the configured clients that do not exist.
    pub(crate) async fn create_first_clients(&self) -> Result<()> {
        for (id, settings) in &self.settings.clients {
            let ClientSettings { secret, first_party, scope, redirect_uris, legacy } = settings.clone();
            let secret = secret.map(|secret| self.keys.hash(&aad(id), secret.expose().as_bytes()));
            let client = Client { secret, first_party, scope, redirect_uris, legacy, ..Client::approved(id.clone()) };
            self.add_to_index(IdIndex::Clients, id.as_str()).await?;
            if self.documents.create(&client_key(id)?, &client).await? {
                self.audit.note("OAuth client created", &"settings", id);
            }
        }
        Ok(())
    }

    /// Creates the public client of the console, unless it exists.
    pub(crate) async fn create_console_client(&self, id: &ClientId, callback: &str) -> Result<()> {
        let client = Client {
            scope: vec![Scope::Profile, Scope::Apps],
            redirect_uris: vec![callback.to_owned()],
            description: "The console".to_owned(),
            grants: vec![GrantType::AuthorizationCode],
            ..Client::approved(id.clone())
        };
        self.add_to_index(IdIndex::Clients, id.as_str()).await?;
        if self.documents.create(&client_key(id)?, &client).await? {
            self.audit.note("OAuth client created", &"settings", id);
        } else if !self.client_named(id.as_str()).await?.is_some_and(|found| is_console_at(&found, callback)) {
            tracing::warn!(client = %id, "nobody can log in to the console: its OAuth client is somebody else's, set another console.client_id");
        }
        Ok(())
    }

    /// Returns true if it is the console of this site, which is sent codes by a path of the site only.
    pub(crate) fn is_own_console(&self, client: &Client, redirect_uri: &str) -> bool {
        self.console.as_ref() == Some(&client.id) && client.owner.is_none() && redirect_uri.starts_with('/')
    }

    /// Authenticates a client by Basic credentials or by those in the body, but not by both (RFC 6749 section 2.3).
    ///
    /// Beside Basic credentials, the body may have the same id, but no secret.
    pub(crate) async fn authenticate_client(
        &self,
        basic: Option<Basic>,
        (body_id, body_secret): (Option<&str>, &Option<Secret>),
        from: IpAddr,
    ) -> Result<Client> {
        let (id, sent) = match basic {
            Some(_) if body_secret.is_some() => return Err(authenticated_twice()),
            Some(basic) if body_id.is_some_and(|id| id != basic.id) => {
                return Err(self.refuse_client(&basic.id, from));
            }
            Some(basic) => (basic.id, readings(basic.secret)),
            None => {
                let id = body_id.ok_or_else(|| Error::oauth(OAuthErrorCode::InvalidClient, "client_id is missing"))?;
                (id.to_owned(), vec![body_secret.clone().unwrap_or_default()])
            }
        };
        match self.client_named(&id).await? {
            Some(client) if sent.iter().any(|sent| self.proves(&client, sent)) => Ok(client),
            _ => Err(self.refuse_client(&id, from)),
        }
    }

    /// The client with this id, unless it is deleted.
    pub(crate) async fn client_named(&self, id: &str) -> Result<Option<Client>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let client = self.documents.read::<Client>(&client_key(&id)?).await?.map(|stored| stored.value);
        Ok(client.filter(|client| client.status != ClientStatus::Deleted))
    }

    /// Refuses credentials unless they are those of an approved client.
    pub(crate) async fn check_client(
        &self,
        basic: Option<Basic>,
        body: (Option<&str>, &Option<Secret>),
        from: IpAddr,
    ) -> Result<()> {
        let client = self.authenticate_client(basic, body, from).await?;
        match client.status {
            ClientStatus::Approved => Ok(()),
            _ => Err(self.refuse_client(client.id.as_str(), from)),
        }
    }

    fn refuse_client(&self, id: &str, from: IpAddr) -> Error {
        metrics::refused("client");
        let (source, object) = (rate_limit_address(from), format!("token endpoint from {from}"));
        let note = |actor: &dyn Display| self.audit.note_of(&source, "client refused", actor, &object);
        match id.parse::<ClientId>() {
            Ok(id) => note(&id),
            // Invalid ids are not logged: they can be long and contain line breaks.
            Err(_) => note(&"something that is no client id"),
        }
        Error::oauth(OAuthErrorCode::InvalidClient, "Invalid client id or secret")
    }

    fn proves(&self, client: &Client, sent: &Secret) -> bool {
        match &client.secret {
            Some(hash) => self.keys.verify_hash(hash, &aad(&client.id), sent.expose().as_bytes()),
            None => sent.expose().is_empty(),
        }
    }
}

/// The secret as sent, as most clients do, and form-decoded, as RFC 6749 section 2.3.1 requires.
fn readings(secret: Secret) -> Vec<Secret> {
    let spaced = secret.expose().replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok().map(Secret::new);
    std::iter::once(secret).chain(decoded).collect()
}

/// Two secrets could be those of two clients.
pub(crate) fn authenticated_twice() -> Error {
    let reason = "client_secret is in the body although the header has credentials: send one of the two";
    Error::oauth(OAuthErrorCode::InvalidRequest, reason)
}

pub(crate) fn aad(id: &ClientId) -> String {
    format!("secret of client {id}")
}

pub(crate) fn client_key(id: &ClientId) -> Result<Key> {
    Ok(Key::new(&Tag::named("o", id.as_str())?, "client")?)
}

/// Returns true if it is a client of the operator that redirects to this path.
fn is_console_at(client: &Client, callback: &str) -> bool {
    client.owner.is_none() && client.redirect_uris.iter().any(|uri| uri == callback)
}
