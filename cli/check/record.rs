//! A codec and its examples, as they stand in a line of JSON.

use std::{collections::BTreeSet, path::PathBuf};

use runtime::Function;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use types::Timestamp;

use super::{
    codec::{Codec, Example, Excluded, Expected, Input},
    members::{OF_CODECS, OF_EXAMPLES, Others},
};
use crate::{payload::Payload, style::Style};

/// What the functions see as the current time unless `extra.recvTime` says otherwise: the first moment of 2026.
const TIME_MS: i64 = 1_767_225_600_000;

/// The most examples of a codec, because its report comes as a whole.
const EXAMPLES_MAX: usize = 1024;

/// A line as it was written.
#[derive(Deserialize)]
#[serde(expecting = "a codec")]
pub(super) struct Record {
    pub(super) id: Option<String>,
    pub(super) script: Option<String>,
    pub(super) script_file: Option<PathBuf>,
    style: Option<Style>,
    #[serde(default)]
    examples: Vec<RawExample>,
    /// What says where the script is from, and other things for other programs.
    #[serde(flatten)]
    others: Others,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Uplink,
    Convert,
    Validate,
    DownlinkEncode,
    DownlinkDecode,
    UplinkNormalize,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ending {
    Value,
    Undefined,
    Throws,
    Timeout,
}

/// How results are compared; the order of members and the tenth digit of numbers never count.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Match {
    KeyOrder,
    #[serde(rename = "float-1e-9")]
    Float,
    ModuloNullOrEmpty,
}

/// What a result depends on beside its input.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dependence {
    /// The time zone, which is always UTC.
    Tz,
    Now,
    Random,
}

/// What is known of the JavaScript engine.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum QuickJs {
    Differs,
}

#[derive(Deserialize)]
#[serde(expecting = "an example")]
struct RawExample {
    kind: Option<Kind>,
    port: Option<u8>,
    bytes_hex: Option<String>,
    #[serde(default, deserialize_with = "present")]
    input_obj: Option<Value>,
    extra: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present")]
    expected: Option<Value>,
    outcome: Option<Ending>,
    oracle_ok: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    oracle: Option<Value>,
    oracle_outcome: Option<Ending>,
    env: Option<Vec<Dependence>>,
    quickjs: Option<QuickJs>,
    #[serde(rename = "match")]
    matching: Option<Match>,
    desc: Option<String>,
    #[serde(flatten)]
    others: Others,
}

/// Tells a member that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Record {
    /// Names of members that mean nothing here; or what is wrong with one that should.
    pub(super) fn others(&self) -> Result<BTreeSet<String>, String> {
        let mut names: BTreeSet<String> = self.others.names(OF_CODECS)?.cloned().collect();
        for (index, example) in self.examples.iter().enumerate() {
            let others = example.others.names(OF_EXAMPLES);
            names.extend(others.map_err(|reason| in_example(index, &reason))?.cloned());
        }
        Ok(names)
    }

    /// The codec that was meant, or what is wrong with it.
    pub(super) fn codec(self, id: String, script: String, others: BTreeSet<String>) -> Result<Codec, String> {
        if self.examples.len() > EXAMPLES_MAX {
            return Err(format!("it has more than {EXAMPLES_MAX} examples"));
        }
        let examples = self.examples.into_iter().enumerate();
        let examples = examples.map(|(index, raw)| raw.example().map_err(|reason| in_example(index, &reason)));
        let dialect = self.style.map(Into::into);
        Ok(Codec { id, script, dialect, examples: examples.collect::<Result<_, _>>()?, others })
    }
}

fn in_example(index: usize, reason: &str) -> String {
    format!("example {}: {reason}", index + 1)
}

impl RawExample {
    fn example(self) -> Result<Example, String> {
        let function = self.kind.unwrap_or(Kind::Uplink).function();
        Ok(Example {
            input: self.input(function)?,
            time_ms: self.time_ms(),
            excluded: self.excluded(),
            ignores_empty: self.matching == Some(Match::ModuloNullOrEmpty),
            expected: self.expected(),
            description: self.desc.unwrap_or_default(),
            port: self.port.unwrap_or(0),
            extra: self.extra.unwrap_or_default(),
            function,
        })
    }

    fn input(&self, function: Function) -> Result<Input, String> {
        let takes_bytes = matches!(function, Function::Decoder | Function::DecodeDownlink);
        match (&self.bytes_hex, &self.input_obj) {
            (Some(digits), _) if takes_bytes => {
                let payload: Result<Payload, _> = digits.parse();
                payload
                    .map(|payload| Input::Bytes(payload.0))
                    .map_err(|error| format!("`bytes_hex` not valid: {error}"))
            }
            (_, Some(json)) if !takes_bytes => Ok(Input::Json(json.clone())),
            _ if takes_bytes => Err("`bytes_hex` is missing".to_owned()),
            _ => Err("`input_obj` is missing".to_owned()),
        }
    }

    fn time_ms(&self) -> i64 {
        let received = self.extra.as_ref().and_then(|extra| extra.get("recvTime")).and_then(Value::as_str);
        // What is no time is still something that the function may get.
        let time = received.and_then(|text| text.parse::<Timestamp>().ok());
        time.map_or(TIME_MS, Timestamp::as_millis)
    }

    fn excluded(&self) -> Option<Excluded> {
        let depends_on = |what| self.env.iter().flatten().any(|name| *name == what);
        if depends_on(Dependence::Now) {
            Some(Excluded::Now)
        } else if depends_on(Dependence::Random) {
            Some(Excluded::Random)
        } else if matches!(self.quickjs, Some(QuickJs::Differs)) && self.outcome != Some(Ending::Timeout) {
            Some(Excluded::Engine)
        } else {
            let unsound = self.oracle_ok == Some(false) && self.oracle.is_none() && self.oracle_outcome.is_none();
            unsound.then_some(Excluded::Unsound)
        }
    }

    /// What the author states, or what an oracle answered where it knows better.
    fn expected(&self) -> Expected {
        let (ending, value) = match self.oracle_ok {
            Some(false) => (self.oracle_outcome, &self.oracle),
            _ => (self.outcome, &self.expected),
        };
        match ending {
            Some(Ending::Undefined) => Expected::Undefined,
            Some(Ending::Throws) => Expected::Throws,
            Some(Ending::Timeout) => Expected::Timeout,
            Some(Ending::Value) | None => value.clone().map_or(Expected::Unknown, Expected::Value),
        }
    }
}

impl Kind {
    const fn function(self) -> Function {
        match self {
            Self::Uplink => Function::Decoder,
            Self::Convert => Function::Converter,
            Self::Validate => Function::Validator,
            Self::DownlinkEncode => Function::Encoder,
            Self::DownlinkDecode => Function::DecodeDownlink,
            Self::UplinkNormalize => Function::NormalizeUplink,
        }
    }
}
