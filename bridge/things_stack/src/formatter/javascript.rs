//! Formatters in JavaScript, called as The Things Stack calls them: `decodeUplink` with `normalizeUplink`, or else
//! `Decoder`; `encodeDownlink`, or else `Encoder`; `decodeDownlink`.

use std::{sync::Arc, time::Duration};

use bridge::codec::{
    outcome::{self, CodecError, Encoded, Input, Run},
    script::Script,
};
use runtime::{Call, CallOutcome, EntryPoint, Failure, Function, Pool, Slot, Sources, Value};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{conversion, decoded::Decoded, measurements::Measurements};

/// Direction of the messages that a formatter handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Uplink,
    Downlink,
}

/// Prefix of warnings of the normalizer.
const NORMALIZER: &str = "`normalizeUplink`";

/// The name of the function that normalizes.
const NORMALIZE_UPLINK: &str = "normalizeUplink";
/// The name of the function that decodes downlinks.
const DECODE_DOWNLINK: &str = "decodeDownlink";

/// A formatter in JavaScript.
pub(crate) struct JavaScript {
    script: Script,
    /// True if the text has the name of the function, so that it may be defined.
    has_normalizer: bool,
    has_downlink_decoder: bool,
}

impl JavaScript {
    /// The script of a formatter, of which only the functions of its role count.
    pub(crate) fn new(text: &str, role: Role, id: &str, (pool, wait_max): (Arc<Pool>, Duration)) -> Self {
        Self {
            script: Script::new(sources(text, role), id, pool, wait_max),
            has_normalizer: text.contains(NORMALIZE_UPLINK),
            has_downlink_decoder: text.contains(DECODE_DOWNLINK),
        }
    }

    /// Loads it before its first message comes; the failure if it cannot be loaded.
    pub(crate) async fn load(&self, deadline: Instant) -> Option<Failure> {
        self.script.load(deadline).await.ok()?.err()
    }

    /// Calls `decodeUplink({bytes, fPort, recvTime})` and `normalizeUplink({data})`, or `Decoder(bytes, port)`.
    pub(crate) async fn decode(&self, payload: &[u8], input: &Input<'_>, ran: &mut Run) -> Result<Decoded, CodecError> {
        const NAME: &str = "decodeUplink";
        let request = call_of(EntryPoint::Uplink, payload.to_vec(), input);
        let (value, warnings) = call(&self.script, NAME, request, ran).await?;
        let (mut uplink, normalized) = fields(NAME, value, warnings)?;
        let (warnings, others) = uplink.warnings.into_iter().partition(|warning| warning.starts_with(NORMALIZER));
        uplink.warnings = others;
        let mut measurements = match (&normalized, &uplink.object) {
            (Some(normalized), _) => Measurements::of_normalizer(normalized),
            (None, Some(decoded)) if !self.has_normalizer => Measurements::of_decoder(decoded).unwrap_or_default(),
            (None, _) => Measurements::default(),
        };
        measurements.warnings.splice(..0, warnings);
        Ok(Decoded { uplink, normalized: measurements })
    }

    /// Calls `decodeDownlink({bytes, fPort})`; without it, nothing is decoded.
    pub(crate) async fn decode_downlink(
        &self,
        payload: &[u8],
        input: &Input<'_>,
    ) -> Result<outcome::Decoded, CodecError> {
        if !self.has_downlink_decoder {
            return Ok(outcome::Decoded::default());
        }
        let request = call_of(EntryPoint::DecodeDownlink, payload.to_vec(), input);
        let (value, warnings) = call(&self.script, DECODE_DOWNLINK, request, &mut Run::default()).await?;
        fields(DECODE_DOWNLINK, value, warnings).map(|(decoded, _)| decoded)
    }

    /// Calls `encodeDownlink({data, fPort})`, or `Encoder(data, port)`.
    pub(crate) async fn encode(&self, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
        const NAME: &str = "encodeDownlink";
        let request = call_of(EntryPoint::EncodeDownlink, object.as_bytes().to_vec(), input);
        match call(&self.script, NAME, request.clone(), &mut Run::default()).await {
            Ok((Value::Bytes { bytes, port }, _)) => Ok(Encoded { bytes, port }),
            Ok(_) => Err(malformed(NAME)),
            // The Things Stack converts what is no byte, where the sandbox refuses it.
            Err(error @ CodecError::Failed { .. }) => self.convert(NAME, request).await.ok_or(error),
            Err(error) => Err(error),
        }
    }
}

impl JavaScript {
    /// Calls the encoder alone, and converts what it returns; nothing if that cannot be had.
    async fn convert(&self, name: &'static str, request: Call) -> Option<Encoded> {
        let single_function = Some(Function::Encoder);
        let request = Call { entry_point: EntryPoint::SingleFunction, single_function, ..request };
        match call(&self.script, name, request, &mut Run::default()).await.ok()? {
            (Value::Returned { json: Some(json) }, _) => conversion::encoded(json.get()),
            _ => None,
        }
    }
}

pub(crate) fn sources(text: &str, role: Role) -> Sources {
    match role {
        Role::Uplink => Sources { decoder: text.to_owned(), ..Sources::default() },
        // It may have an encoder, a decoder or both.
        Role::Downlink => Sources::single_file(text),
    }
}

/// Takes the fields of a decoder, and the result of its normalizer. Fails if the value is not fields.
fn fields(
    name: &'static str,
    value: Value,
    warnings: Vec<String>,
) -> Result<(outcome::Decoded, Option<Box<RawValue>>), CodecError> {
    let Value::Fields { json, normalized, .. } = value else { return Err(malformed(name)) };
    let object = Some(json).filter(|json| json.get() != "null");
    Ok((outcome::Decoded { object, warnings }, normalized))
}

fn call_of(entry_point: EntryPoint, payload: Vec<u8>, input: &Input<'_>) -> Call {
    let Input { port, time_ms, seed, .. } = *input;
    Call { entry_point, port, time_ms, seed, payload, extra: String::new(), single_function: None }
}

/// Returns the result, and the warnings.
async fn call(
    script: &Script,
    name: &'static str,
    call: Call,
    ran: &mut Run,
) -> Result<(Value, Vec<String>), CodecError> {
    let CallOutcome { result, warnings, .. } = script.call(name, call, ran).await?;
    match result {
        Ok(value) => Ok((value, warnings)),
        Err(failure) => Err(CodecError::failed(name, failure)),
    }
}

fn malformed(name: &'static str) -> CodecError {
    CodecError::failed(name, Failure::malformed_reply(Slot::Decoder))
}
