//! What an uplink has to know of its application: all but the texts of the functions, which are mostly loaded already.

use runtime::SourcesHash;
use serde::{Deserialize, Serialize};
use types::{AccessKey, AppId};

use crate::application::{Application, Conversion, Functions};

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
    /// With what devices are registered when they join; its rights are the account service's business.
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

impl Outline {
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
