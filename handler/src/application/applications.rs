//! Applications as the handler knows them: how their payloads are to be understood.

use std::sync::Arc;

use runtime::{Dialect, Sources};
use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Entry, Key, Store, Tag};
use types::{AccessKey, AppId};

use super::summary::Outline;
use crate::{Error, sealer::Vault};

/// The most bytes of a payload format.
const FORMAT_BYTES_MAX: usize = 64;
/// How many keys one step of a deletion takes.
const DELETE_STEP: usize = 256;
/// How often a change is tried when others change the same application.
const TRIES_MAX: usize = 8;

/// What becomes of the key for registering on join when an application is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKey {
    /// It is set too.
    Replaced,
    /// It stays what it is: whoever sets the application may not know it.
    Kept,
}

/// What the handler keeps about an application.
///
/// It is kept in two records, which are written together: its [`Outline`], and the texts of its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// Its id.
    pub app_id: AppId,
    /// How payloads are converted, as it was given; see [`Application::conversion`].
    pub payload_format: String,
    /// The text of its payload functions.
    pub functions: Functions,
    /// With what devices are registered when they join; its rights are the account service's business.
    pub register_on_join_access_key: Option<AccessKey>,
}

/// The text of the four payload functions; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Functions {
    /// Bytes to fields.
    pub decoder: String,
    /// Fields to fields.
    pub converter: String,
    /// Fields to yes or no.
    pub validator: String,
    /// Fields to bytes.
    pub encoder: String,
}

/// What happens to a payload on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The application's own functions, of the dialect that it chose if it did.
    Custom(Option<Dialect>),
    /// Cayenne Low Power Payload.
    CayenneLpp,
    /// It is passed on as it is.
    None,
}

impl Application {
    /// An application that was registered and not set up yet.
    pub fn new(app_id: AppId) -> Self {
        Self {
            app_id,
            payload_format: String::new(),
            functions: Functions::default(),
            register_on_join_access_key: None,
        }
    }

    /// What its payload format asks for.
    pub fn conversion(&self) -> Conversion {
        Conversion::of(&self.payload_format)
    }

    /// Its functions as they are loaded.
    pub(crate) fn sources(&self) -> Sources {
        let Functions { decoder, converter, validator, encoder } = self.functions.clone();
        let dialect = match self.conversion() {
            Conversion::Custom(dialect) => dialect,
            Conversion::CayenneLpp | Conversion::None => None,
        };
        Sources { decoder, converter, validator, encoder, dialect, ..Sources::default() }
    }
}

impl Conversion {
    /// What a payload format asks for; one that we do not know converts nothing.
    pub(crate) fn of(payload_format: &str) -> Self {
        match payload_format {
            "custom" => Self::Custom(None),
            "cayennelpp" => Self::CayenneLpp,
            name => Dialect::from_name(name).map_or(Self::None, |dialect| Self::Custom(Some(dialect))),
        }
    }
}

impl Functions {
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The applications that are registered here.
#[derive(Clone)]
pub struct Applications {
    store: Arc<dyn Store>,
    vault: Vault,
}

impl Applications {
    /// The applications in `store`, whose keys `vault` keeps closed.
    pub fn new(store: Arc<dyn Store>, vault: Vault) -> Self {
        Self { store, vault }
    }

    /// Registers an application; [`Error::AlreadyExists`] when it is registered.
    pub async fn register(&self, app_id: &AppId) -> Result<(), Error> {
        let batch = Batch::new().expect_absent(outline_key(app_id)?);
        match self.store.commit(self.put(batch, &Application::new(app_id.clone()))?).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Error::already_exists("Application", app_id)),
        }
    }

    /// Looks up an application; [`Error::NotFound`] when it is not registered.
    pub async fn get(&self, app_id: &AppId) -> Result<Application, Error> {
        // Both are read at one moment, so that they belong together.
        let keys = [outline_key(app_id)?, functions_key(app_id)?];
        let mut found = self.store.get(&keys).await?.into_iter().map(|entry| entry.map(|entry| entry.value));
        let outline = found.next().flatten().ok_or_else(|| not_found(app_id))?;
        let functions = found.next().flatten().ok_or_else(|| Error::FunctionsMissing { app_id: app_id.clone() })?;
        let outline = Outline::read(&self.vault, &outline)?;
        Ok(outline.with(serde_json::from_slice(&functions)?))
    }

    /// Looks up an application without its texts; [`Error::NotFound`] when it is not registered.
    pub async fn outline(&self, app_id: &AppId) -> Result<Outline, Error> {
        Outline::read(&self.vault, &self.entry(app_id).await?.value)
    }

    /// Replaces the settings of a registered application, and the key for registering on join if `join_key` says so.
    pub async fn set(&self, mut application: Application, join_key: JoinKey) -> Result<(), Error> {
        if application.payload_format.len() > FORMAT_BYTES_MAX {
            return Err(Error::invalid("PayloadFormat", format_args!("at most {FORMAT_BYTES_MAX} bytes are allowed")));
        }
        if application.payload_format.is_empty() && !application.functions.is_empty() {
            application.payload_format = "custom".to_owned();
        }
        for _ in 0..TRIES_MAX {
            let entry = self.entry(&application.app_id).await?;
            if join_key == JoinKey::Kept {
                let current = Outline::read(&self.vault, &entry.value)?;
                application.register_on_join_access_key = current.register_on_join_access_key;
            }
            let batch = Batch::new().expect(entry.key, entry.version);
            if self.store.commit(self.put(batch, &application)?).await? == Commit::Done {
                return Ok(());
            }
        }
        Err(Error::Conflict { what: format!("application {}", application.app_id) })
    }

    /// Removes an application with everything it owns.
    ///
    /// Its own records go last, so that a deletion that was interrupted can be repeated.
    pub async fn delete(&self, app_id: &AppId) -> Result<(), Error> {
        let records = [self.entry(app_id).await?.key, functions_key(app_id)?];
        self.delete_owned(app_id, &records, &Batch::new()).await?;
        let [outline, functions] = records.clone();
        let gone = Batch::new().expect_absent(outline.clone());
        // It expects nothing, so that nothing can be in its way.
        let _ = self.store.commit(Batch::new().delete(outline).delete(functions)).await?;
        // A device may have been set after the last look; from now on none can be, until it is registered again.
        self.delete_owned(app_id, &records, &gone).await
    }

    /// Removes what an application owns beside its own records, as long as what is expected is so.
    async fn delete_owned(&self, app_id: &AppId, records: &[Key], expected: &Batch) -> Result<(), Error> {
        let everything = Key::new(&Tag::application(app_id.as_str())?, PREFIX)?;
        loop {
            let page = self.store.list(&everything, None, DELETE_STEP).await?;
            let owned: Vec<Key> =
                page.into_iter().map(|entry| entry.key).filter(|key| !records.contains(key)).collect();
            if owned.is_empty() {
                return Ok(());
            }
            let batch = owned.into_iter().fold(expected.clone(), Batch::delete);
            if self.store.commit(batch).await? == Commit::Conflict {
                return Ok(());
            }
        }
    }

    /// Makes the batch write both records.
    fn put(&self, batch: Batch, application: &Application) -> Result<Batch, Error> {
        let outline = application.outline().write(&self.vault)?;
        let functions = serde_json::to_vec(&application.functions)?;
        Ok(batch.put(outline_key(&application.app_id)?, outline).put(functions_key(&application.app_id)?, functions))
    }

    async fn entry(&self, app_id: &AppId) -> Result<Entry, Error> {
        entry(self.store.as_ref(), app_id).await
    }
}

/// The outline of a registered application, which changes with its texts; [`Error::NotFound`] when it is not registered.
pub(crate) async fn entry(store: &dyn Store, app_id: &AppId) -> Result<Entry, Error> {
    let found = store.get(&[outline_key(app_id)?]).await?;
    found.into_iter().next().flatten().ok_or_else(|| not_found(app_id))
}

pub(crate) fn not_found(app_id: &AppId) -> Error {
    Error::not_found("Application", app_id)
}

/// Where everything lies that the handler keeps for an application.
pub(crate) const PREFIX: &str = "handler/";

/// Where an application's outline lies.
pub(crate) fn outline_key(app_id: &AppId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{PREFIX}application"))?)
}

/// Where the texts of its functions lie.
fn functions_key(app_id: &AppId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{PREFIX}functions"))?)
}
