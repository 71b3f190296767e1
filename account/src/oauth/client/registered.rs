//! OAuth clients that users register and the operator approves or rejects.

use api::rest::account::{self as body, ClientUpdate, NewClient};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use store::{Key, Tag};
use types::{ClientId, Secret, UserId};

use super::{Client, ClientStatus, GrantType, aad, client_key};
use crate::{
    Account, Error, Result,
    documents::{Document, id_index::IdIndex, retried},
    seal,
    user::user_tag,
};

const CLIENTS_MAX: usize = 100;
/// Maximum number of undecided clients in one list.
const UNDECIDED_MAX: usize = 1000;

impl Account {
    /// Registers a client, which the operator must approve. Returns it with its secret.
    pub(crate) async fn create_client(&self, owner: &UserId, new: NewClient) -> Result<body::Client> {
        let change = self.audit.change("OAuth client created", owner, &new.name)?;
        let client = change.run(self.add_client(owner, new)).await?;
        self.show_client(&client)
    }

    async fn add_client(&self, owner: &UserId, new: NewClient) -> Result<Client> {
        let NewClient { name: id, description, uri, grants, scope } = new;
        let taken = || Error::Taken { what: "OAuth client", id: id.to_string() };
        if self.documents.read::<Client>(&client_key(&id)?).await?.is_some() {
            return Err(taken());
        }
        if self.documents.keys(&index_prefix(owner)?, CLIENTS_MAX).await?.len() >= CLIENTS_MAX {
            return Err(Error::Full { what: "OAuth client", count_max: CLIENTS_MAX });
        }
        let secret = Secret::new(URL_SAFE_NO_PAD.encode(self.random.array::<32>()));
        let aad = aad(&id);
        let mut client = Client {
            id: id.clone(),
            secret: Some(self.keys.hash(&aad, secret.expose().as_bytes())),
            first_party: false,
            scope: Vec::new(),
            redirect_uris: Vec::new(),
            legacy: false,
            owner: Some(owner.clone()),
            sealed: Some(self.keys.seal(&aad, secret.expose().as_bytes(), self.random.as_ref())?),
            description: String::new(),
            revision: 0,
            grants: vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
            status: ClientStatus::Undecided,
        };
        let grants = (!grants.is_empty()).then_some(grants);
        let all = ClientUpdate { description: Some(description), uri: Some(uri), grants, scope: Some(scope) };
        client.update(all)?;
        // Readers skip index entries whose client does not exist or has another owner.
        self.documents.put(&undecided_key(&id)?, &()).await?;
        self.documents.put(&index_key(owner, &id)?, &()).await?;
        self.add_to_index(IdIndex::Clients, id.as_str()).await?;
        if !self.documents.create(&client_key(&id)?, &client).await? {
            return Err(taken());
        }
        Ok(client)
    }

    /// The clients that a user registered, in order of their ids.
    pub(crate) async fn clients_of(&self, owner: &UserId) -> Result<Vec<body::Client>> {
        let found = self.clients_listed(&index_prefix(owner)?, CLIENTS_MAX).await?;
        found.iter().filter(|client| client.is_of(owner)).map(|client| self.show_client(client)).collect()
    }

    /// A client that this user registered. Other users' clients are not found.
    pub(crate) async fn client_of(&self, owner: &UserId, id: &ClientId) -> Result<body::Client> {
        self.show_client(&self.own_client(owner, id).await?.value)
    }

    pub(crate) async fn update_client(&self, owner: &UserId, id: &ClientId, update: ClientUpdate) -> Result<()> {
        let changed = self.audit.change("OAuth client changed", owner, id)?;
        changed.run(self.change_client(owner, id, |client| client.update(update.clone()))).await
    }

    /// Deletes a client. Its id stays taken, and its tokens become invalid.
    pub(crate) async fn delete_client(&self, owner: &UserId, id: &ClientId) -> Result<()> {
        let delete = |client: &mut Client| {
            client.status = ClientStatus::Deleted;
            Ok(())
        };
        let deleted = async {
            self.change_client(owner, id, delete).await?;
            self.unlist_client(Some(owner), id).await
        };
        let change = self.audit.change("OAuth client deleted", owner, id)?;
        change.run(deleted).await
    }

    /// The clients that the operator must decide on, without their secrets.
    pub async fn clients_undecided(&self) -> Result<Vec<body::Client>> {
        let found = self.clients_listed(&undecided_prefix()?, UNDECIDED_MAX).await?;
        let undecided = found.iter().filter(|client| client.status == ClientStatus::Undecided);
        Ok(undecided.map(Client::body).collect())
    }

    /// Approves a client. Returns it as approved, because its owner may have just changed it.
    pub async fn approve_client(&self, id: &ClientId) -> Result<body::Client> {
        let change = self.audit.change("OAuth client approved", &"operator", id)?;
        Ok(change.run(self.decide_client(id, ClientStatus::Approved)).await?.body())
    }

    /// Rejects a client, with immediate effect.
    pub async fn reject_client(&self, id: &ClientId) -> Result<()> {
        let change = self.audit.change("OAuth client rejected", &"operator", id)?;
        change.run(self.decide_client(id, ClientStatus::Rejected)).await.map(drop)
    }

    /// Sets the operator's decision. Returns the client as stored afterwards.
    pub(crate) async fn decide_client(&self, id: &ClientId, status: ClientStatus) -> Result<Client> {
        let attempt = || async {
            let found = self.documents.read::<Client>(&client_key(id)?).await?;
            let found = found.filter(|stored| stored.value.status != ClientStatus::Deleted);
            let mut stored = found.ok_or_else(|| no_client(id))?;
            stored.value.status = status;
            Ok(self.documents.replace(&stored).await?.then_some(stored.value))
        };
        let client = retried("OAuth client", attempt).await?;
        self.documents.remove(&undecided_key(id)?).await?;
        Ok(client)
    }

    /// Removes a deleted client from its owner's index, where it would count against the limit, and from the undecided
    /// ones.
    pub(crate) async fn unlist_client(&self, owner: Option<&UserId>, id: &ClientId) -> Result<()> {
        if let Some(owner) = owner {
            self.documents.remove(&index_key(owner, id)?).await?;
        }
        self.documents.remove(&undecided_key(id)?).await
    }

    async fn change_client(
        &self,
        owner: &UserId,
        id: &ClientId,
        change: impl Fn(&mut Client) -> Result<()>,
    ) -> Result<()> {
        let attempt = || async {
            let mut stored = self.own_client(owner, id).await?;
            change(&mut stored.value)?;
            if stored.value.status == ClientStatus::Undecided {
                self.documents.put(&undecided_key(id)?, &()).await?;
            }
            Ok(self.documents.replace(&stored).await?.then_some(()))
        };
        retried("OAuth client", attempt).await
    }

    async fn own_client(&self, owner: &UserId, id: &ClientId) -> Result<Document<Client>> {
        let found = self.documents.read::<Client>(&client_key(id)?).await?;
        found.filter(|stored| stored.value.is_of(owner)).ok_or_else(|| no_client(id))
    }

    async fn clients_listed(&self, prefix: &Key, limit: usize) -> Result<Vec<Client>> {
        let entries = self.documents.keys(prefix, limit).await?;
        let ids = entries.iter().filter_map(|key| key.path().rsplit('/').next()?.parse().ok());
        let keys = ids.map(|id: ClientId| client_key(&id)).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<Client>>> = self.documents.read_all(&keys).await?;
        Ok(found.into_iter().flatten().map(|stored| stored.value).collect())
    }

    /// A client with its secret, for its owner.
    fn show_client(&self, client: &Client) -> Result<body::Client> {
        let mut body = client.body();
        if let Some(sealed) = &client.sealed {
            let opened = self.keys.open("a client's secret", &aad(&client.id), sealed)?;
            let text = std::str::from_utf8(&opened).map_err(|_| seal::SealError::Sealed("a client's secret"))?;
            body.secret = Some(Secret::new(text));
        }
        Ok(body)
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
