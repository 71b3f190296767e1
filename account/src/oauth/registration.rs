//! OAuth clients that users register: they ask, and the operator decides.
//!
//! What users were promised about a client must stay so. When its owner changes where it sends users to or what it
//! may ask for, the operator decides again.

use api::rest::account::{self as body, ClientUpdate, NewClient};
use axum::http::Uri;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use store::{Key, Tag};
use types::{ClientId, Scope, Secret, UserId};

use super::client::{Client, GrantType, Standing, client_key, place};
use crate::{Account, Error, Result, audit, document::Stored, user::user_tag};

/// The most OAuth clients of one user.
const CLIENTS_MAX: usize = 100;
/// The most that wait for the operator and are listed at once.
const UNDECIDED_MAX: usize = 1000;
/// How often a change is tried again when others change the same client.
const TRIES_MAX: usize = 20;
/// The most characters of a description.
const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
/// The most bytes of an address.
const URI_BYTES_MAX: usize = 500;
/// What would run in the browser instead of going somewhere.
const SCHEMES_REFUSED: [&str; 5] = ["javascript", "data", "file", "blob", "vbscript"];

impl Account {
    /// Registers a client that waits for the operator; shows its secret.
    pub(crate) async fn create_client(&self, owner: &UserId, new: NewClient) -> Result<body::Client> {
        let NewClient { name: id, description, uri, grants, scope } = new;
        if self.documents.keys(&index_prefix(owner)?, CLIENTS_MAX).await?.len() >= CLIENTS_MAX {
            return Err(Error::Full { what: "OAuth client", count_max: CLIENTS_MAX });
        }
        let secret = Secret::new(URL_SAFE_NO_PAD.encode(self.random_bytes::<32>()));
        let place = place(&id);
        let mut client = Client {
            id: id.clone(),
            secret: Some(self.keys.mark(&place, secret.expose().as_bytes())),
            first_party: false,
            scope: Vec::new(),
            redirect_uris: Vec::new(),
            legacy: false,
            owner: Some(owner.clone()),
            sealed: Some(self.keys.seal(&place, secret.expose().as_bytes(), self.random.as_ref())?),
            description: String::new(),
            grants: vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
            standing: Standing::Undecided,
        };
        let grants = (!grants.is_empty()).then_some(grants);
        let all = ClientUpdate { description: Some(description), uri: Some(uri), grants, scope: Some(scope) };
        client.update(all)?;
        // An entry of an index for a client that is not there, or not theirs, is passed over.
        self.documents.put(&undecided_key(&id)?, &()).await?;
        self.documents.put(&index_key(owner, &id)?, &()).await?;
        if !self.documents.create(&client_key(&id)?, &client).await? {
            return Err(Error::Taken { what: "OAuth client", id: id.to_string() });
        }
        audit::event("OAuth client created", owner, &id);
        self.show_client(&client)
    }

    /// The clients that a user registered, in the order of their ids.
    pub(crate) async fn clients_of(&self, owner: &UserId) -> Result<Vec<body::Client>> {
        let found = self.clients_listed(&index_prefix(owner)?, CLIENTS_MAX).await?;
        found.iter().filter(|client| client.is_of(owner)).map(|client| self.show_client(client)).collect()
    }

    /// A client that a user registered; somebody else's and none at all answer alike.
    pub(crate) async fn client_of(&self, owner: &UserId, id: &ClientId) -> Result<body::Client> {
        self.show_client(&self.own_client(owner, id).await?.value)
    }

    /// Changes what is named of a client.
    pub(crate) async fn update_client(&self, owner: &UserId, id: &ClientId, update: ClientUpdate) -> Result<()> {
        self.documents.put(&undecided_key(id)?, &()).await?;
        self.change_client(owner, id, |client| client.update(update.clone())).await?;
        audit::event("OAuth client changed", owner, id);
        Ok(())
    }

    /// Deletes a client; its id stays taken, and what it was given is worth nothing any more.
    pub(crate) async fn delete_client(&self, owner: &UserId, id: &ClientId) -> Result<()> {
        let delete = |client: &mut Client| {
            client.standing = Standing::Deleted;
            Ok(())
        };
        self.change_client(owner, id, delete).await?;
        audit::event("OAuth client deleted", owner, id);
        Ok(())
    }

    /// The clients that wait for the operator, without their secrets. Not part of any interface.
    pub async fn clients_undecided(&self) -> Result<Vec<body::Client>> {
        let found = self.clients_listed(&undecided_prefix()?, UNDECIDED_MAX).await?;
        let undecided = found.iter().filter(|client| client.standing == Standing::Undecided);
        Ok(undecided.map(Client::shown).collect())
    }

    /// The operator lets a client in. Not part of any interface.
    pub async fn accept_client(&self, id: &ClientId) -> Result<()> {
        self.decide_client(id, Standing::Accepted).await?;
        audit::event("OAuth client accepted", &"operator", id);
        Ok(())
    }

    /// The operator keeps a client out, at once. Not part of any interface.
    pub async fn reject_client(&self, id: &ClientId) -> Result<()> {
        self.decide_client(id, Standing::Rejected).await?;
        audit::event("OAuth client rejected", &"operator", id);
        Ok(())
    }

    async fn decide_client(&self, id: &ClientId, standing: Standing) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let found = self.documents.read::<Client>(&client_key(id)?).await?;
            let found = found.filter(|stored| stored.value.standing != Standing::Deleted);
            let mut stored = found.ok_or_else(|| no_client(id))?;
            stored.value.standing = standing;
            if self.documents.replace(&stored).await? {
                if let Some(entry) = self.documents.read::<()>(&undecided_key(id)?).await? {
                    self.documents.delete(&entry).await?;
                }
                return Ok(());
            }
        }
        Err(Error::Contended { what: "OAuth client" })
    }

    async fn change_client(
        &self,
        owner: &UserId,
        id: &ClientId,
        change: impl Fn(&mut Client) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let mut stored = self.own_client(owner, id).await?;
            change(&mut stored.value)?;
            if self.documents.replace(&stored).await? {
                return Ok(());
            }
        }
        Err(Error::Contended { what: "OAuth client" })
    }

    async fn own_client(&self, owner: &UserId, id: &ClientId) -> Result<Stored<Client>> {
        let found = self.documents.read::<Client>(&client_key(id)?).await?;
        found.filter(|stored| stored.value.is_of(owner)).ok_or_else(|| no_client(id))
    }

    async fn clients_listed(&self, prefix: &Key, limit: usize) -> Result<Vec<Client>> {
        let entries = self.documents.keys(prefix, limit).await?;
        let ids = entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok());
        let keys = ids.map(|id: ClientId| client_key(&id)).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<Client>>> = self.documents.read_all(&keys).await?;
        Ok(found.into_iter().flatten().map(|stored| stored.value).collect())
    }

    /// A client as its owner may see it.
    fn show_client(&self, client: &Client) -> Result<body::Client> {
        let mut shown = client.shown();
        if let Some(sealed) = &client.sealed {
            let opened = self.keys.unseal("a client's secret", &place(&client.id), sealed)?;
            let text = std::str::from_utf8(&opened).map_err(|_| Error::Sealed("a client's secret"))?;
            shown.secret = Some(Secret::new(text));
        }
        Ok(shown)
    }
}

impl Client {
    /// The client as everybody may see it whom it asks for something.
    pub(super) fn shown(&self) -> body::Client {
        body::Client {
            name: self.id.clone(),
            description: self.description.clone(),
            secret: None,
            uri: self.redirect_uris.first().cloned().unwrap_or_default(),
            grants: self.grants.iter().map(|grant| grant.as_str().to_owned()).collect(),
            scope: self.scope.clone(),
            accepted: self.standing == Standing::Accepted,
            rejected: self.standing == Standing::Rejected,
            official: self.first_party,
        }
    }

    fn is_of(&self, user_id: &UserId) -> bool {
        self.owner.as_ref() == Some(user_id) && self.standing != Standing::Deleted
    }

    fn update(&mut self, update: ClientUpdate) -> Result<()> {
        let before = (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone());
        if let Some(description) = update.description {
            check_description(&description)?;
            self.description = description;
        }
        if let Some(uri) = update.uri {
            check_uri(&uri)?;
            self.redirect_uris = vec![uri];
        }
        if let Some(grants) = update.grants {
            self.grants = grants.iter().map(|grant| grant_for_all(grant)).collect::<Result<_>>()?;
        }
        if let Some(scope) = update.scope {
            check_scope(&scope)?;
            self.scope = scope;
        }
        if before != (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone()) {
            self.standing = Standing::Undecided;
        }
        Ok(())
    }
}

/// Users' passwords are for the operator's own clients only.
fn grant_for_all(text: &str) -> Result<GrantType> {
    let must = "must be authorization_code and refresh_token, or one of them";
    let grant = text.parse().ok().filter(|grant| *grant != GrantType::Password);
    grant.ok_or(Error::Invalid { what: "grants", must })
}

fn check_scope(scope: &[Scope]) -> Result<()> {
    if !scope.is_empty() && scope.len() <= 5 && scope.iter().all(|scope| *scope == scope.general()) {
        return Ok(());
    }
    Err(Error::Invalid { what: "scope", must: "must name some of profile, apps, gateways, components and clients" })
}

fn check_description(text: &str) -> Result<()> {
    let plain = text.chars().all(|character| !character.is_control() || character == '\n');
    if plain && text.chars().count() <= DESCRIPTION_CHARACTERS_MAX {
        return Ok(());
    }
    Err(Error::Invalid { what: "description", must: "must have at most 1000 characters and no control characters" })
}

/// Codes go to this address: on the way they must be read by nobody, and nothing may run there.
fn check_uri(text: &str) -> Result<()> {
    let must = "must be an address such as https://example.com/callback or app://callback, without a fragment; \
                http only on localhost";
    let refused = || Error::Invalid { what: "uri", must };
    let uri: Uri = text.parse().map_err(|_| refused())?;
    let scheme = uri.scheme_str().ok_or_else(refused)?.to_ascii_lowercase();
    let host = uri.host().ok_or_else(refused)?;
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let shown = text.len() <= URI_BYTES_MAX && !text.contains(['#', '@']) && !host.is_empty();
    if shown && !SCHEMES_REFUSED.contains(&scheme.as_str()) && (scheme != "http" || local) {
        Ok(())
    } else {
        Err(refused())
    }
}

fn no_client(id: &ClientId) -> Error {
    Error::NotFound { what: "OAuth client", id: id.to_string() }
}

fn index_prefix(owner: &UserId) -> Result<Key> {
    Ok(Key::new(&user_tag(owner)?, "client/")?)
}

fn index_key(owner: &UserId, id: &ClientId) -> Result<Key> {
    Ok(Key::new(&user_tag(owner)?, &format!("client/{id}"))?)
}

fn undecided_prefix() -> Result<Key> {
    Ok(Key::new(&Tag::named("oo", "undecided")?, "client/")?)
}

fn undecided_key(id: &ClientId) -> Result<Key> {
    Ok(Key::new(&Tag::named("oo", "undecided")?, &format!("client/{id}"))?)
}
