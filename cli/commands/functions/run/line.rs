//! A line of a stream: a message as JSON, of our own or as a network reports it.

use std::sync::Arc;

use replay::RecordedUplink;
use runtime::{Call, EntryPoint};
use serde::Deserialize;
use serde_json::value::RawValue;
use types::{HexBytes, Timestamp};

use super::super::args::{
    message::SEED,
    values::{base64, variables_of},
};

/// Defaults for members that a line leaves out.
#[derive(Clone)]
pub(super) struct Defaults {
    pub(super) port: Option<u8>,
    /// None for that of the message, or now.
    pub(super) time: Option<Timestamp>,
    pub(super) now: Timestamp,
    /// Further members of the input, as JSON; empty for none.
    pub(super) extra: Arc<str>,
}

/// The id of a line, and the members that only messages of our own have.
#[derive(Deserialize)]
struct Identified<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    hex: Option<&'a RawValue>,
    #[serde(default)]
    base64: Option<&'a RawValue>,
}

/// A message of our own.
#[derive(Deserialize)]
struct OwnMessage {
    hex: Option<String>,
    base64: Option<String>,
    port: Option<u8>,
    time: Option<Timestamp>,
    seed: Option<u64>,
    #[serde(default)]
    variables: Option<Box<RawValue>>,
}

/// The id of a line, and its call or its fault.
pub(super) fn parse<'t>(text: &'t str, defaults: &Defaults) -> (Option<&'t RawValue>, Result<Call, String>) {
    // An array would be read as the members of an object, in their order.
    if !text.trim_start().starts_with('{') {
        return (None, Err("it is no JSON object".to_owned()));
    }
    match serde_json::from_str::<Identified<'_>>(text) {
        Ok(Identified { id, hex: None, base64: None }) => (id, of_network(text, defaults)),
        Ok(Identified { id, .. }) => (id, of_own(text, defaults)),
        Err(error) => (None, Err(format!("it is no JSON object: {error}"))),
    }
}

fn of_own(text: &str, defaults: &Defaults) -> Result<Call, String> {
    let OwnMessage { hex, base64: encoded, port, time, seed, variables } =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let payload = match (hex, encoded) {
        (Some(hex), None) => hex.parse::<HexBytes>().map_err(|error| format!("`hex`: {error}"))?,
        (None, Some(text)) => base64(&text).map_err(|error| format!("`base64`: {error}"))?,
        (None, None) => return Err("`hex` or `base64` must be a string".to_owned()),
        (Some(_), Some(_)) => return Err("it has both `hex` and `base64`".to_owned()),
    };
    let extra = match &variables {
        Some(variables) if variables.get().starts_with('{') => variables_of(variables),
        Some(_) => return Err("`variables` must be an object".to_owned()),
        None => String::new(),
    };
    let port = port.or(defaults.port).unwrap_or(1);
    Ok(call(RecordedUplink { payload: payload.0, port, time, seed, extra, ..RecordedUplink::default() }, defaults))
}

fn of_network(text: &str, defaults: &Defaults) -> Result<Call, String> {
    let uplink = replay::parse_uplink(text).map_err(|error| format!("{error}, and no `hex` or `base64`"))?;
    let uplink = RecordedUplink { port: defaults.port.unwrap_or(uplink.port), ..uplink };
    Ok(call(uplink, defaults))
}

fn call(uplink: RecordedUplink, defaults: &Defaults) -> Call {
    let time = uplink.time.or(defaults.time).unwrap_or(defaults.now);
    Call {
        entry_point: EntryPoint::Uplink,
        port: uplink.port,
        time_ms: time.as_millis(),
        seed: uplink.seed.unwrap_or(SEED),
        payload: uplink.payload,
        extra: if uplink.extra.is_empty() { defaults.extra.to_string() } else { uplink.extra },
        single_function: None,
    }
}
