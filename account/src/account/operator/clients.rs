//! The operator's own OAuth clients, and the list of all clients.

use api::rest::account as body;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use types::{ClientId, Scope, Secret};

use crate::{
    Account, Error, Result,
    documents::{Document, id_index::IdIndex},
    oauth::client::{
        Client, ClientStatus, GrantType, aad, client_key,
        rules::{check_description, check_own_uri, check_scope},
    },
};

/// A new OAuth client of the operator, which needs no approval.
#[derive(Clone, Debug)]
pub struct OperatorClient {
    /// Its id, which is never reused.
    pub id: ClientId,
    /// The description for users.
    pub description: String,
    /// The general scopes that it may request.
    pub scope: Vec<Scope>,
    /// Its redirect URIs, which must match exactly. A path is on this site.
    pub redirect_uris: Vec<String>,
    /// True if it may ask users for their password.
    pub first_party: bool,
    /// True if it is public, that is without a secret.
    pub public: bool,
    /// True if it is a v2 client, which sends neither a code challenge nor a redirect URI with the code.
    pub legacy: bool,
}

impl Account {
    /// All clients after the id `after`, in order, without their secrets; [`LISTED_MAX`](crate::LISTED_MAX) at most.
    pub async fn list_clients(&self, after: Option<&ClientId>) -> Result<Vec<body::Client>> {
        let ids = self.ids_in_index::<ClientId>(IdIndex::Clients, after.map(ClientId::as_str)).await?;
        let keys = ids.iter().map(client_key).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<Client>>> = self.documents.read_all(&keys).await?;
        let there = found.iter().flatten().filter(|stored| stored.value.status != ClientStatus::Deleted);
        Ok(there.map(|stored| stored.value.body()).collect())
    }

    /// Registers a client. Returns its secret, which is not stored, unless the client is public.
    pub async fn register_client(&self, new: OperatorClient) -> Result<Option<Secret>> {
        check(&new)?;
        let OperatorClient { id, description, scope, redirect_uris, first_party, public, legacy } = new;
        let secret = (!public).then(|| Secret::new(URL_SAFE_NO_PAD.encode(self.random.array::<32>())));
        let grants = GrantType::all().into_iter().filter(|grant| first_party || *grant != GrantType::Password);
        let client = Client {
            secret: secret.as_ref().map(|secret| self.keys.hash(&aad(&id), secret.expose().as_bytes())),
            first_party,
            scope,
            redirect_uris,
            legacy,
            description,
            grants: grants.collect(),
            ..Client::approved(id.clone())
        };
        let created = async {
            self.add_to_index(IdIndex::Clients, id.as_str()).await?;
            let is_new = self.documents.create(&client_key(&id)?, &client).await?;
            is_new.then_some(secret).ok_or_else(|| Error::Taken { what: "OAuth client", id: id.to_string() })
        };
        let change = self.audit.change("OAuth client created", &"operator", &id)?;
        change.run(created).await
    }

    /// Deletes any client. Its id stays taken, and its tokens become invalid.
    pub async fn remove_client(&self, id: &ClientId) -> Result<()> {
        let deleted = async {
            let client = self.decide_client(id, ClientStatus::Deleted).await?;
            self.unlist_client(client.owner.as_ref(), id).await
        };
        let change = self.audit.change("OAuth client deleted", &"operator", id)?;
        change.run(deleted).await
    }
}

fn check(new: &OperatorClient) -> Result<()> {
    check_description(&new.description)?;
    check_scope(&new.scope)?;
    new.redirect_uris.iter().try_for_each(|uri| check_own_uri(uri))
}
