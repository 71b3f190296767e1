//! OAuth clients: programs that act for users.

use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, UserId};

use super::{Basic, OAuthErrorCode, parse_scope};
use crate::{
    Account, Error, Result, audit,
    id_index::IdIndex,
    metrics,
    seal::{Mark, Sealed},
    settings::ClientSettings,
};

/// An OAuth client, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// The HMAC of its secret; public clients have none.
    pub(crate) secret: Option<Mark>,
    /// Whether it belongs to the operator, so that users may trust it with their password.
    pub(crate) first_party: bool,
    /// The general scopes that it may request.
    pub(crate) scope: Vec<Scope>,
    /// Exact redirect URIs; without any, it cannot use codes.
    #[serde(default)]
    pub(crate) redirect_uris: Vec<String>,
    /// Whether it is a v2 client that sends neither a PKCE challenge nor its redirect URI with the code.
    #[serde(default)]
    pub(crate) legacy: bool,
    /// The user who registered it; the operator's own have none.
    #[serde(default)]
    pub(crate) owner: Option<UserId>,
    /// The sealed secret, to show it to its owner.
    #[serde(default)]
    pub(crate) sealed: Option<Sealed>,
    /// Its description for users.
    #[serde(default)]
    pub(crate) description: String,
    /// The grants that it may use.
    #[serde(default = "GrantType::all")]
    pub(crate) grants: Vec<GrantType>,
    /// The operator's decision.
    #[serde(default)]
    pub(crate) status: ClientStatus,
}

/// The operator's decision about a client. Only accepted clients get tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientStatus {
    /// Nothing yet.
    Undecided,
    /// The client may be used.
    #[default]
    Accepted,
    /// The client may not be used.
    Rejected,
    /// Its owner deleted it.
    Deleted,
}

/// A way to get tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrantType {
    /// A username and password.
    Password,
    /// An authorization code.
    AuthorizationCode,
    /// A refresh token.
    RefreshToken,
}

impl GrantType {
    /// All grants.
    pub(crate) fn all() -> Vec<Self> {
        vec![Self::Password, Self::AuthorizationCode, Self::RefreshToken]
    }

    /// The name in OAuth requests.
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
    /// Whether it has no secret, so that anybody can impersonate it.
    pub(crate) fn is_public(&self) -> bool {
        self.secret.is_none()
    }

    /// Rejects a client that is not accepted, or that may not use this grant.
    pub(crate) fn check_grant(&self, grant: GrantType) -> Result<()> {
        let refuse = |reason| Err(Error::oauth(OAuthErrorCode::UnauthorizedClient, reason));
        match self.status {
            ClientStatus::Accepted if self.grants.contains(&grant) => Ok(()),
            ClientStatus::Accepted => refuse("this client is not registered for this grant"),
            _ => refuse("this client is not accepted: ask the operator of the network"),
        }
    }

    /// The scopes that it gets: those requested, if allowed, or else all that it may request.
    pub(crate) fn scope_for(&self, asked: Option<&[String]>) -> Result<Vec<Scope>> {
        let asked = match asked {
            Some(asked) if !asked.is_empty() => parse_scope(asked).map_err(super::to_oauth_error)?,
            _ => return Ok(self.scope.clone()),
        };
        match asked.iter().find(|scope| !self.scope.contains(&scope.general())) {
            Some(scope) => {
                Err(Error::oauth(OAuthErrorCode::InvalidScope, format!("this client may not ask for the scope `{scope}`")))
            }
            None => Ok(asked),
        }
    }
}

impl Account {
    /// Creates the clients in the settings that do not exist yet.
    pub(crate) async fn create_first_clients(&self) -> Result<()> {
        for (id, settings) in &self.settings.clients {
            let ClientSettings { secret, first_party, scope, redirect_uris, legacy } = settings.clone();
            let client = Client {
                id: id.clone(),
                secret: secret.map(|secret| self.keys.mark(&place(id), secret.expose().as_bytes())),
                first_party,
                scope,
                redirect_uris,
                legacy,
                owner: None,
                sealed: None,
                description: String::new(),
                grants: GrantType::all(),
                status: ClientStatus::Accepted,
            };
            self.add_to_index(IdIndex::Clients, id.as_str()).await?;
            if self.documents.create(&client_key(id)?, &client).await? {
                audit::event("OAuth client created", &"settings", id);
            }
        }
        Ok(())
    }

    /// Authenticates a client by Basic credentials or those in the body, which must agree.
    pub(crate) async fn authenticate_client(
        &self,
        basic: Option<Basic>,
        body_id: Option<&str>,
        body_secret: &Option<Secret>,
    ) -> Result<Client> {
        let (id, sent) = match basic {
            Some(basic) if body_id.is_some_and(|id| id != basic.id) => return Err(refused(&basic.id)),
            Some(basic) => (basic.id, readings(basic.secret)),
            None => {
                let id = body_id.ok_or_else(|| Error::oauth(OAuthErrorCode::InvalidClient, "client_id is missing"))?;
                (id.to_owned(), vec![body_secret.clone().unwrap_or_default()])
            }
        };
        match self.client_named(&id).await? {
            Some(client) if sent.iter().any(|sent| self.proves(&client, sent)) => Ok(client),
            _ => Err(refused(&id)),
        }
    }

    /// Returns a client by id, unless it is deleted; a malformed id is unknown.
    pub(crate) async fn client_named(&self, id: &str) -> Result<Option<Client>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let client = self.documents.read::<Client>(&client_key(&id)?).await?.map(|stored| stored.value);
        Ok(client.filter(|client| client.status != ClientStatus::Deleted))
    }

    /// Rejects Basic credentials unless they are those of an accepted client.
    pub(crate) async fn check_client(&self, basic: Basic) -> Result<()> {
        let id = basic.id.clone();
        let client = self.authenticate_client(Some(basic), None, &None).await?;
        if client.status == ClientStatus::Accepted { Ok(()) } else { Err(refused(&id)) }
    }

    fn proves(&self, client: &Client, sent: &Secret) -> bool {
        match &client.secret {
            Some(mark) => self.keys.recognises(mark, &place(&client.id), sent.expose().as_bytes()),
            None => sent.expose().is_empty(),
        }
    }
}

/// A Basic secret as sent, and form-decoded: RFC 6749 2.3.1 requires the encoding, but most clients omit it.
fn readings(secret: Secret) -> Vec<Secret> {
    let spaced = secret.expose().replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok().map(Secret::new);
    std::iter::once(secret).chain(decoded).collect()
}

fn refused(id: &str) -> Error {
    metrics::refused("client");
    match id.parse::<ClientId>() {
        Ok(id) => audit::event("client refused", &id, &"token endpoint"),
        // Do not log a malformed id: it can be long, or forge log lines.
        Err(_) => audit::event("client refused", &"something that is no client id", &"token endpoint"),
    }
    Error::oauth(OAuthErrorCode::InvalidClient, "Invalid client id or secret")
}

pub(crate) fn place(id: &ClientId) -> String {
    format!("secret of client {id}")
}

pub(crate) fn client_key(id: &ClientId) -> Result<Key> {
    Ok(Key::new(&Tag::named("o", id.as_str())?, "client")?)
}
