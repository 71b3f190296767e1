//! Runs one uplink in a fresh sandbox, and compares the result with the object that was stored.

use runtime::{Call, CallOutcome, EntryPoint, Functions, Sandbox, Value};
use serde_json::value::RawValue;
use types::Timestamp;
use workbench::{Difference, json_differences};

use crate::RecordedUplink;

/// The seed of `Math.random` where none is recorded, as of `airlock functions run`.
const SEED: u64 = 1;

/// Inputs of functions where an uplink has none of its own.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// When the network received it.
    pub time: Timestamp,
    /// Further members of their input, as a JSON object; empty for none.
    pub extra: String,
}

/// Result of an uplink, compared with the stored object.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The result is the object that was stored; or there is neither.
    Equal,
    /// The result differs in these places.
    Changed(Vec<Difference>),
    /// It fails, and was decoded before.
    NewlyFailing(String),
    /// It is decoded, and was not before.
    NewlyDecoded,
    /// It fails, and was not decoded before either.
    StillFailing(String),
}

/// The result of an uplink, with its new object.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) verdict: Verdict,
    pub(crate) object: Option<Box<RawValue>>,
    pub(crate) fuel: u64,
}

impl Verdict {
    /// Returns the name in output.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Changed(_) => "changed",
            Self::NewlyFailing(_) => "newly_failing",
            Self::NewlyDecoded => "newly_decoded",
            Self::StillFailing(_) => "still_failing",
        }
    }

    /// Returns why it fails, if it does.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::NewlyFailing(failure) | Self::StillFailing(failure) => Some(failure),
            Self::Equal | Self::Changed(_) | Self::NewlyDecoded => None,
        }
    }
}

/// Runs an uplink, and compares.
pub(crate) fn check(
    sandbox: &mut Sandbox,
    functions: &Functions,
    uplink: &RecordedUplink,
    defaults: &Defaults,
) -> Checked {
    let extra = if uplink.extra.is_empty() { &defaults.extra } else { &uplink.extra };
    let call = Call {
        entry_point: EntryPoint::Uplink,
        port: uplink.port,
        time_ms: uplink.time.unwrap_or(defaults.time).as_millis(),
        seed: uplink.seed.unwrap_or(SEED),
        payload: uplink.payload.clone(),
        extra: extra.clone(),
        single_function: None,
    };
    let CallOutcome { result, fuel, .. } = sandbox.call(functions, &call);
    let made = match result {
        Err(failure) => Err(failure.to_string()),
        // It would not be published.
        Ok(Value::Fields { valid: false, .. }) => Err("the validator returned false".to_owned()),
        Ok(value) => Ok(object(value)),
    };
    let (verdict, object) = match made {
        Err(reason) if uplink.object.is_some() => (Verdict::NewlyFailing(reason), None),
        Err(reason) => (Verdict::StillFailing(reason), None),
        Ok(object) => (compare(uplink.object.as_deref(), object.as_deref()), object),
    };
    Checked { verdict, object, fuel }
}

/// The object of a result.
fn object(value: Value) -> Option<Box<RawValue>> {
    match value {
        Value::Fields { json, .. } => Some(json).filter(|json| json.get() != "null"),
        _ => None,
    }
}

fn compare(stored: Option<&RawValue>, object: Option<&RawValue>) -> Verdict {
    let (stored, object) = match (stored, object) {
        (None, None) => return Verdict::Equal,
        (None, Some(_)) => return Verdict::NewlyDecoded,
        (Some(stored), None) => (stored.get(), "null"),
        (Some(stored), Some(object)) => (stored.get(), object.get()),
    };
    if stored == object {
        return Verdict::Equal;
    }
    let differences = json_differences(stored, object);
    if differences.is_empty() { Verdict::Equal } else { Verdict::Changed(differences) }
}
