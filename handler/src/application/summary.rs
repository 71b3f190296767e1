//! What an uplink has to know of its application: all but the texts of the functions, which are mostly loaded already.

use runtime::SourcesHash;
use serde::{Deserialize, Serialize};
use server::seal::Sealed;
use types::{AccessKey, AppId};

use super::applications::{Application, Conversion, Functions};
use crate::{Error, sealer::Vault};

/// An application without the texts of its functions; short, as every uplink reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// Its id.
    pub app_id: AppId,
    /// How payloads are converted, as it was given; see [`Outline::conversion`].
    pub payload_format: String,
    /// Whether there is a function that an uplink meets.
    pub has_uplink_function: bool,
    /// Names the functions: by this they are found when somebody has loaded them.
    pub functions_hash: SourcesHash,
    /// With what devices are registered when they join; none in what an uplink reads. Its rights are the account
    /// service's business.
    pub register_on_join_access_key: Option<AccessKey>,
}

impl Application {
    /// The application without the texts of its functions.
    pub fn outline(&self) -> Outline {
        let Functions { decoder, converter, validator, encoder: _ } = &self.functions;
        Outline {
            app_id: self.app_id.clone(),
            payload_format: self.payload_format.clone(),
            has_uplink_function: [decoder, converter, validator].iter().any(|text| !text.is_empty()),
            functions_hash: self.sources().hash(),
            register_on_join_access_key: self.register_on_join_access_key.clone(),
        }
    }
}

/// An outline as it is kept, its key closed.
#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    outline: &'a Outline,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Sealed>,
}

/// The part of a record that has to be opened; older records have none, and their key beside the rest.
#[derive(Deserialize)]
struct Closed {
    #[serde(default)]
    key: Option<Sealed>,
}

impl Outline {
    /// Its record.
    pub(crate) fn write(mut self, vault: &Vault) -> Result<Vec<u8>, Error> {
        let key = self.register_on_join_access_key.take();
        let key = key.map(|key| vault.close(&place(&self.app_id), &key)).transpose()?;
        Ok(serde_json::to_vec(&Record { outline: &self, key })?)
    }

    /// The outline of a record, whole.
    pub(crate) fn read(vault: &Vault, record: &[u8]) -> Result<Self, Error> {
        let mut outline: Self = serde_json::from_slice(record)?;
        if let Closed { key: Some(key) } = serde_json::from_slice(record)? {
            let key = vault.show("key for registering on join", &place(&outline.app_id), &key)?;
            outline.register_on_join_access_key = Some(key);
        }
        Ok(outline)
    }

    /// What its payload format asks for.
    pub fn conversion(&self) -> Conversion {
        Conversion::of(&self.payload_format)
    }

    /// The whole application.
    pub(crate) fn with(self, functions: Functions) -> Application {
        let Self { app_id, payload_format, register_on_join_access_key, .. } = self;
        Application { app_id, payload_format, functions, register_on_join_access_key }
    }
}

fn place(app_id: &AppId) -> String {
    format!("application {app_id}")
}
