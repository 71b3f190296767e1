//! OAuth clients: programs that act for users.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret};

use super::{Basic, Refusal, parse_scope};
use crate::{Account, Error, Result, audit, config::ClientSettings, metrics, seal::Mark};

/// An OAuth client, as kept under its id.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: ClientId,
    /// What its secret is recognised by; a public client has none.
    secret: Option<Mark>,
    /// Whether it belongs to the operator, so that users may trust it with their password.
    pub(super) first_party: bool,
    /// The general scopes that it may ask for.
    scope: Vec<Scope>,
}

impl Client {
    /// The scopes that it gets: what it asks for, if it may, or else all that it may have.
    pub(super) fn scope_for(&self, asked: Option<&[String]>) -> Result<Vec<Scope>> {
        let asked = match asked {
            Some(asked) if !asked.is_empty() => parse_scope(asked).map_err(super::in_oauth_words)?,
            _ => return Ok(self.scope.clone()),
        };
        match asked.iter().find(|scope| !self.scope.contains(&scope.general())) {
            Some(scope) => {
                Err(Error::oauth(Refusal::Scope, format!("this client may not ask for the scope `{scope}`")))
            }
            None => Ok(asked),
        }
    }
}

impl Account {
    /// Creates the clients of the settings that do not exist yet.
    pub(crate) async fn create_first_clients(&self) -> Result<()> {
        for (id, settings) in &self.settings.clients {
            let ClientSettings { secret, first_party, scope } = settings;
            let secret = secret.as_ref().map(|secret| self.keys.mark(&place(id), secret.expose().as_bytes()));
            let client = Client { id: id.clone(), secret, first_party: *first_party, scope: scope.clone() };
            if self.documents.create(&client_key(id)?, &client).await? {
                audit::event("OAuth client created", &"settings", id);
            }
        }
        Ok(())
    }

    /// The client that asks, by Basic credentials or by those in the body; both must agree when both are there.
    pub(super) async fn authenticate_client(
        &self,
        basic: Option<Basic>,
        body_id: Option<&str>,
        body_secret: &Option<Secret>,
    ) -> Result<Client> {
        let (id, secret) = match basic {
            Some(basic) if body_id.is_some_and(|id| id != basic.id) => return Err(refused(&basic.id)),
            Some(basic) => (basic.id, Some(basic.secret)),
            None => {
                let id = body_id.ok_or_else(|| Error::oauth(Refusal::Client, "client_id is missing"))?;
                (id.to_owned(), body_secret.clone())
            }
        };
        let client = match id.parse() {
            Ok(id) => self.documents.read::<Client>(&client_key(&id)?).await?,
            Err(_) => None,
        };
        let sent = secret.unwrap_or_default();
        match client {
            Some(client) if self.proves(&client.value, &sent) => Ok(client.value),
            _ => Err(refused(&id)),
        }
    }

    /// Refuses Basic credentials that are not those of a client.
    pub(crate) async fn check_client(&self, basic: Basic) -> Result<()> {
        self.authenticate_client(Some(basic), None, &None).await.map(drop)
    }

    fn proves(&self, client: &Client, sent: &Secret) -> bool {
        match &client.secret {
            Some(mark) => self.keys.recognises(mark, &place(&client.id), sent.expose().as_bytes()),
            None => sent.expose().is_empty(),
        }
    }
}

fn refused(id: &str) -> Error {
    metrics::refused("client");
    // An id that was not parsed could forge lines of the log.
    audit::event("client refused", &id.escape_debug(), &"token endpoint");
    Error::oauth(Refusal::Client, "Invalid client id or secret")
}

fn place(id: &ClientId) -> String {
    format!("secret of client {id}")
}

fn client_key(id: &ClientId) -> Result<Key> {
    Ok(Key::new(&Tag::named("o", id.as_str())?, "client")?)
}
