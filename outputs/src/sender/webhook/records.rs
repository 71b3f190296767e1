//! Webhooks as they are described, stored and loaded. Their secrets are sealed in the store.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use reqwest::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use server::seal::{Sealed, SealingKeys};
use store::{Batch, Commit, Entry, Store, Version};
use types::{AppId, Grant, Random, Secret, WebhookId};

use super::{
    address,
    grants::{Gate, Grants},
    sender::{WebhookClient, WebhookSender},
    signature::Signer,
    template,
};
use crate::{
    Error, destination,
    message::{DROPPED, EVENTS},
    sender::Sender,
};

const HEADERS_MAX: usize = 16;
const HEADER_BYTES_MAX: usize = 2048;
/// Headers that the HTTP client or the sender sets.
const OWN_HEADERS: [&str; 8] =
    ["connection", "content-length", "content-type", "expect", "host", "te", "transfer-encoding", "upgrade"];
/// Maximum number of attempts of a change while others change the webhooks of the same application.
const ATTEMPTS_MAX: usize = 8;
const WHAT: &str = "secrets of a webhook";

/// A webhook, as its owners describe it.
#[derive(Clone, Debug, Default)]
pub struct Webhook {
    /// URL of the receiver. It may have `{app_id}`, `{dev_id}` and `{event}` after its host.
    pub url: String,
    /// Events that it gets; all if the list is empty.
    pub events: Vec<String>,
    /// Headers of each request, with the same templates in their values. They are secret.
    pub headers: BTreeMap<String, Secret>,
    /// The key that signs requests; none if they are not signed.
    pub secret: Option<Secret>,
    /// Grant of the user who set it. It sends messages while they may read them.
    pub set_by: Grant,
    /// Identifies what is stored: each change makes another one. Nothing sets it.
    pub revision: String,
}

/// A webhook in the store.
#[derive(Clone, Serialize, Deserialize)]
struct WebhookRecord {
    url: String,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    set_by: Grant,
    sealed: Sealed,
}

#[derive(Serialize, Deserialize)]
struct Secrets {
    headers: BTreeMap<String, Secret>,
    secret: Option<Secret>,
}

type Records = BTreeMap<WebhookId, WebhookRecord>;

pub(crate) struct StoredWebhooks {
    store: Arc<dyn Store>,
    keys: SealingKeys,
    random: Arc<dyn Random>,
    client: Arc<WebhookClient>,
    pub(crate) grants: Arc<dyn Grants>,
}

/// The webhooks of an application.
pub(crate) struct Loaded {
    /// The version of their record; none if there is none.
    pub(crate) version: Option<Version>,
    pub(crate) webhooks: Vec<(WebhookId, LoadedWebhook)>,
}

/// A webhook, ready to be used.
pub(crate) struct LoadedWebhook {
    pub(crate) webhook: Webhook,
    events: HashSet<String>,
    sender: Arc<WebhookSender>,
}

impl Webhook {
    /// Checks what can be checked before anything is sent.
    fn check(&self, allow_private: bool) -> Result<(), Error> {
        address::check_url(&self.url, allow_private)?;
        if let Some(event) = self.events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            return Err(Error::invalid(
                "Events",
                format_args!("`{event}` is unknown: there are {}", EVENTS.join(", ")),
            ));
        }
        if self.headers.len() > HEADERS_MAX {
            return Err(Error::invalid("Headers", format_args!("at most {HEADERS_MAX} are allowed")));
        }
        if let Some(name) = named_twice(self.headers.keys()) {
            return Err(Error::invalid("Headers", format_args!("`{name}` is named twice")));
        }
        self.headers.iter().try_for_each(|(name, value)| check_header(name, value.expose()))?;
        self.secret.as_ref().map(Signer::new).transpose()?;
        Ok(())
    }
}

/// A name that is there before, in whatever case.
pub(super) fn named_twice<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut before = HashSet::new();
    names.into_iter().find(|name| !before.insert(name.to_ascii_lowercase()))
}

fn check_header(name: &str, value: &str) -> Result<(), Error> {
    let is_own = |name: &HeaderName| {
        let name = name.as_str();
        OWN_HEADERS.contains(&name) || name.starts_with("webhook-") || name.starts_with("airlock-")
    };
    match HeaderName::try_from(name) {
        Ok(name) if !is_own(&name) => {}
        Ok(name) => return Err(Error::invalid("Headers", format_args!("`{name}` is set by the server"))),
        Err(_) => return Err(Error::invalid("Headers", format_args!("`{name}` is no name of a header"))),
    }
    template::check("Headers", value)?;
    if value.len() > HEADER_BYTES_MAX || HeaderValue::try_from(value).is_err() {
        return Err(Error::invalid(
            "Headers",
            format_args!("the value of `{name}` must be one line of visible characters"),
        ));
    }
    Ok(())
}

impl LoadedWebhook {
    pub(crate) fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || event == DROPPED || self.events.contains(event)
    }

    pub(crate) fn sender(&self) -> Arc<dyn Sender> {
        self.sender.clone()
    }
}

impl StoredWebhooks {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        keys: SealingKeys,
        random: Arc<dyn Random>,
        client: Arc<WebhookClient>,
        grants: Arc<dyn Grants>,
    ) -> Self {
        Self { store, keys, random, client, grants }
    }

    pub(crate) async fn load(&self, app_id: &AppId) -> Result<Loaded, Error> {
        let (entry, records) = self.read(app_id).await?;
        let load = |(id, record): (WebhookId, WebhookRecord)| {
            let webhook = self.open(app_id, &id, record)?;
            let (grants, grant) = (self.grants.clone(), webhook.set_by.clone());
            let gate = Gate { grants, app_id: app_id.clone(), grant };
            let sender = Arc::new(WebhookSender::new(&webhook, self.client.clone(), gate)?);
            let events = webhook.events.iter().cloned().collect();
            Ok((id, LoadedWebhook { webhook, events, sender }))
        };
        let webhooks = records.into_iter().map(load).collect::<Result<_, Error>>()?;
        Ok(Loaded { version: entry.map(|entry| entry.version), webhooks })
    }

    /// Stores a webhook, and returns it with its revision; none if the application has `max` others.
    pub(crate) async fn put(
        &self,
        app_id: &AppId,
        id: &WebhookId,
        webhook: Webhook,
        max: usize,
    ) -> Result<Option<Webhook>, Error> {
        let record = self.seal(app_id, id, &webhook)?;
        let put = |records: &mut Records| {
            records.insert(id.clone(), record.clone());
            Ok((records.len() <= max).then_some(()))
        };
        let is_put = self.change(app_id, put).await?.is_some();
        let revision = self.revision(app_id, id, &record)?;
        Ok(is_put.then_some(Webhook { revision, ..webhook }))
    }

    /// Stores what `change` makes of a webhook, and returns it. What it gets is what is replaced.
    pub(crate) async fn update(
        &self,
        app_id: &AppId,
        id: &WebhookId,
        change: impl Fn(Webhook) -> Result<Webhook, Error>,
    ) -> Result<Webhook, Error> {
        let not_found = || Error::NotFound(id.to_string());
        let update = |records: &mut Records| -> Result<Option<Webhook>, Error> {
            let stored = records.get_mut(id).ok_or_else(not_found)?;
            let webhook = change(self.open(app_id, id, stored.clone())?)?;
            *stored = self.seal(app_id, id, &webhook)?;
            Ok(Some(Webhook { revision: self.revision(app_id, id, stored)?, ..webhook }))
        };
        self.change(app_id, update).await?.ok_or_else(not_found)
    }

    /// Returns false if there was no such webhook.
    pub(crate) async fn remove(&self, app_id: &AppId, id: &WebhookId) -> Result<bool, Error> {
        let removed = self.change(app_id, |records| Ok(records.remove(id).map(drop))).await?;
        Ok(removed.is_some())
    }

    /// Changes the webhooks of an application, unless `change` returns nothing. Returns what it returned.
    async fn change<T>(
        &self,
        app_id: &AppId,
        change: impl Fn(&mut Records) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let key = destination::webhooks(app_id)?;
        let changed = store::retry(ATTEMPTS_MAX, async || {
            let (entry, mut records) = self.read(app_id).await?;
            let Some(done) = change(&mut records)? else { return Ok::<_, Error>(Some(None)) };
            let batch = Batch::new().expect_entry(&key, entry.as_ref());
            let batch = match records.is_empty() {
                true => batch.delete(key.clone()),
                false => batch.put(key.clone(), serde_json::to_vec(&records)?).growing(),
            };
            Ok((self.store.commit(batch).await? == Commit::Done).then_some(Some(done)))
        });
        changed.await?.ok_or(Error::Conflict)
    }

    async fn read(&self, app_id: &AppId) -> Result<(Option<Entry>, Records), Error> {
        let entry = self.store.get_one(&destination::webhooks(app_id)?).await?;
        let records = entry.as_ref().map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
        Ok((entry, records.unwrap_or_default()))
    }

    /// Checks a webhook and seals its secrets.
    fn seal(&self, app_id: &AppId, id: &WebhookId, webhook: &Webhook) -> Result<WebhookRecord, Error> {
        webhook.check(self.client.allows_private())?;
        let secrets = Secrets { headers: webhook.headers.clone(), secret: webhook.secret.clone() };
        let sealed = self.keys.seal(&context(app_id, id), &serde_json::to_vec(&secrets)?, self.random.as_ref())?;
        Ok(WebhookRecord {
            url: webhook.url.clone(),
            events: webhook.events.clone(),
            set_by: webhook.set_by.clone(),
            sealed,
        })
    }

    /// No two records have the same, because each is sealed with another nonce.
    fn revision(&self, app_id: &AppId, id: &WebhookId, record: &WebhookRecord) -> Result<String, Error> {
        let hash = self.keys.hash(&format!("revision of {}", context(app_id, id)), &serde_json::to_vec(record)?);
        Ok(hash.as_str().to_owned())
    }

    fn open(&self, app_id: &AppId, id: &WebhookId, record: WebhookRecord) -> Result<Webhook, Error> {
        let revision = self.revision(app_id, id, &record)?;
        let secrets = self.keys.open(WHAT, &context(app_id, id), &record.sealed)?;
        let Secrets { headers, secret } = serde_json::from_slice(&secrets)?;
        Ok(Webhook { url: record.url, events: record.events, headers, secret, set_by: record.set_by, revision })
    }
}

fn context(app_id: &AppId, id: &WebhookId) -> String {
    format!("webhook {app_id}/{id}")
}
