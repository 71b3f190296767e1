//! Payload formatters: none, Cayenne LPP, or a script.

pub(super) mod api;
mod cayenne;
mod conversion;
pub(super) mod decoded;
pub(super) mod directory;
mod javascript;
pub(super) mod measurements;

use std::{sync::Arc, time::Duration};

use bridge::codec::outcome::{self, CodecError, Encoded, Input, Run};
use runtime::Pool;
use tokio::time::Instant;

use self::{
    decoded::Decoded,
    javascript::{JavaScript, Role},
};

/// A formatter as The Things Stack stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct FormatterSource {
    /// Such as `FORMATTER_JAVASCRIPT`; empty for none.
    pub(super) formatter: String,
    /// The text of a script. Devices that have the same one share it.
    pub(super) parameter: Arc<str>,
}

/// A formatter that can run.
pub(super) struct Formatter {
    pub(super) source: FormatterSource,
    /// Identifies it in reports, and as a tenant of the sandbox.
    pub(super) id: String,
    /// Origin of the formatter, for people.
    pub(super) name: String,
    kind: Kind,
}

enum Kind {
    None,
    CayenneLpp,
    JavaScript(Box<JavaScript>),
    /// Another one, which only The Things Stack can run.
    Foreign,
}

/// The error for a device that has no downlink formatter.
pub(super) fn no_formatter() -> CodecError {
    let reason = "the device has no downlink formatter: set one in the Console, or send `frm_payload`";
    CodecError::Command(reason.to_owned())
}

impl FormatterSource {
    pub(super) fn is_repository(&self) -> bool {
        self.formatter == "FORMATTER_REPOSITORY"
    }
}

impl Formatter {
    pub(super) fn new(
        source: FormatterSource,
        role: Role,
        (id, name): (String, String),
        (pool, wait_max): (Arc<Pool>, Duration),
    ) -> Self {
        let kind = match source.formatter.as_str() {
            "" | "FORMATTER_NONE" => Kind::None,
            "FORMATTER_CAYENNELPP" => Kind::CayenneLpp,
            "FORMATTER_JAVASCRIPT" => {
                Kind::JavaScript(Box::new(JavaScript::new(&source.parameter, role, &id, (pool, wait_max))))
            }
            _ => Kind::Foreign,
        };
        Self { source, id, name, kind }
    }

    /// Loads a script before its first message comes; says if that fails.
    pub(super) async fn load(&self, deadline: Instant) {
        if let Kind::JavaScript(script) = &self.kind
            && let Some(failure) = script.load(deadline).await
        {
            tracing::warn!(formatter = self.name, %failure, "a payload formatter cannot be loaded");
        }
    }

    /// Decodes a payload. What is known of the run of a script goes into `ran`.
    pub(super) async fn decode(&self, payload: &[u8], input: &Input<'_>, ran: &mut Run) -> Result<Decoded, CodecError> {
        match &self.kind {
            Kind::None => Ok(Decoded::default()),
            Kind::CayenneLpp => {
                let object = Some(cayenne::decode(payload).map_err(CodecError::CayenneLpp)?);
                let uplink = outcome::Decoded { object, ..outcome::Decoded::default() };
                Ok(Decoded { uplink, ..Decoded::default() })
            }
            Kind::JavaScript(script) => script.decode(payload, input, ran).await,
            Kind::Foreign => Err(self.foreign()),
        }
    }

    /// Decodes the payload of a downlink, as far as the formatter can.
    pub(super) async fn decode_downlink(
        &self,
        payload: &[u8],
        input: &Input<'_>,
    ) -> Result<outcome::Decoded, CodecError> {
        match &self.kind {
            Kind::None | Kind::Foreign => Ok(outcome::Decoded::default()),
            Kind::CayenneLpp => {
                let object = Some(cayenne::decode_downlink(payload).map_err(CodecError::CayenneLpp)?);
                Ok(outcome::Decoded { object, ..outcome::Decoded::default() })
            }
            Kind::JavaScript(script) => script.decode_downlink(payload, input).await,
        }
    }

    /// Encodes an object, which is the text of a JSON object.
    pub(super) async fn encode(&self, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
        match &self.kind {
            Kind::None => Err(no_formatter()),
            Kind::CayenneLpp => {
                let bytes = cayenne::encode(object).map_err(CodecError::CayenneLpp)?;
                Ok(Encoded { bytes, port: None })
            }
            Kind::JavaScript(script) => script.encode(object, input).await,
            Kind::Foreign => Err(self.foreign()),
        }
    }

    fn foreign(&self) -> CodecError {
        CodecError::Unknown(format!("{} cannot run here: choose JavaScript or Cayenne LPP", self.source.formatter))
    }
}
