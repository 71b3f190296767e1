//! A codec and its examples, as they stand in a line of JSON.

use std::{collections::BTreeSet, path::PathBuf};

use client::Payload;
use runtime::Function;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};
use types::Timestamp;

use super::{
    codec::{Codec, Example, Excluded, Expected, Input},
    unknown_members::{OF_CODECS, OF_EXAMPLES, Others},
    words::{Called, Dependence, Ending, Match, QuickJs},
};
use crate::dialect::Style;

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

#[derive(Deserialize)]
#[serde(expecting = "an example")]
struct RawExample {
    #[serde(default, deserialize_with = "stated")]
    kind: Option<Called>,
    port: Option<u8>,
    bytes_hex: Option<String>,
    #[serde(default, deserialize_with = "present")]
    input_obj: Option<Value>,
    extra: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present")]
    expected: Option<Value>,
    #[serde(default, deserialize_with = "stated")]
    outcome: Option<Ending>,
    #[serde(default, deserialize_with = "stated")]
    oracle_ok: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    oracle: Option<Value>,
    #[serde(default, deserialize_with = "stated")]
    oracle_outcome: Option<Ending>,
    #[serde(default, deserialize_with = "stated")]
    env: Option<Vec<Dependence>>,
    #[serde(default, deserialize_with = "stated")]
    quickjs: Option<QuickJs>,
    #[serde(default, rename = "match", deserialize_with = "stated")]
    matching: Option<Match>,
    desc: Option<String>,
    #[serde(flatten)]
    others: Others,
}

/// Tells a member that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Refuses a null for a word, which may be meant as one.
fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    match Option::deserialize(deserializer)? {
        Some(word) => Ok(Some(word)),
        None => Err(D::Error::custom("null says nothing here, leave the member out")),
    }
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

/// Refuses an outcome without the value that it tells of, or beside one that it leaves out; some write null for none.
fn refuse_half(names: [&str; 2], value: Option<&Value>, outcome: Option<Ending>) -> Result<(), String> {
    let [of_value, of_outcome] = names;
    match (outcome, value) {
        (Some(Ending::Value), None) => Err(format!("`{of_outcome}` is `value`, but `{of_value}` is missing")),
        (None | Some(Ending::Value), _) | (_, None | Some(Value::Null)) => Ok(()),
        _ => Err(format!("it has both `{of_value}` and an `{of_outcome}` without a value")),
    }
}

impl RawExample {
    fn example(self) -> Result<Example, String> {
        let function = self.kind.unwrap_or(Called::Uplink).function();
        self.refuse_contradictions()?;
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

    /// What cannot be meant must not pass as a test because one half of it is not looked at.
    fn refuse_contradictions(&self) -> Result<(), String> {
        refuse_half(["expected", "outcome"], self.expected.as_ref(), self.outcome)?;
        refuse_half(["oracle", "oracle_outcome"], self.oracle.as_ref(), self.oracle_outcome)?;
        let has_oracle = self.oracle.is_some() || self.oracle_outcome.is_some();
        match self.oracle_ok {
            None if has_oracle => Err("`oracle_ok` is missing: `false` where the oracle knows better".to_owned()),
            _ => Ok(()),
        }
    }

    fn input(&self, function: Function) -> Result<Input, String> {
        let takes_bytes = matches!(function, Function::Decoder | Function::DecodeDownlink);
        match (&self.bytes_hex, &self.input_obj) {
            (Some(_), Some(_)) => Err("it has both `bytes_hex` and `input_obj`".to_owned()),
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
