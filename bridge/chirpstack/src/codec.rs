//! A device profile's codec: none, Cayenne LPP, or a script.

mod cayenne;
pub(super) mod decoder;
pub(super) mod directory;
mod javascript;

use std::sync::Arc;

use bridge::codec::{
    outcome::{CodecError, Decoded, Encoded, Input, Run},
    script::Script,
};

/// The error for objects of downlinks whose device profile has no codec.
const NO_CODEC: &str = "the device profile has no codec: select one in ChirpStack, or send `data`";

/// The codec of a device profile, ready to run.
#[derive(Clone)]
pub(super) enum Codec {
    None,
    CayenneLpp,
    JavaScript(Arc<Script>),
}

impl Codec {
    /// Returns true if the codec is a script, which needs an [`Input`].
    pub(super) fn is_script(&self) -> bool {
        matches!(self, Self::JavaScript(_))
    }

    /// Decodes a payload. What is known of the run of a script goes into `ran`.
    pub(super) async fn decode(&self, payload: &[u8], input: &Input<'_>, ran: &mut Run) -> Result<Decoded, CodecError> {
        match self {
            Self::None => Ok(Decoded::default()),
            Self::CayenneLpp => {
                let object = cayenne::decode(payload).map_err(CodecError::CayenneLpp)?;
                Ok(Decoded { object: Some(object), ..Decoded::default() })
            }
            Self::JavaScript(script) => javascript::decode(script, payload, input, ran).await,
        }
    }

    /// Encodes an object, which is the text of a JSON object.
    pub(super) async fn encode(&self, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
        match self {
            Self::None => Err(CodecError::Command(NO_CODEC.to_owned())),
            Self::CayenneLpp => {
                let bytes = cayenne::encode(object).map_err(CodecError::CayenneLpp)?;
                Ok(Encoded { bytes, port: None })
            }
            Self::JavaScript(script) => javascript::encode(script, object, input).await,
        }
    }
}
