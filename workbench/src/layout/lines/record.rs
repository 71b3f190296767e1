//! The JSON format of codecs: a line holds one codec and its examples.

use std::{collections::BTreeSet, path::PathBuf};

use runtime::{Dialect, Function};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IntoDeserializer as _},
};
use serde_json::{Map, Value};
use types::{HexBytes, Timestamp};

use crate::{
    codec::{
        Codec, DEFAULT_TIME_MS, EXAMPLES_MAX, Example, Excluded, Expected, Input, KINDS, Tolerance, kind, takes_bytes,
    },
    layout::example::unknown_members::{OF_CODECS, OF_EXAMPLES, UnknownMembers},
    text::place::{Expectation, Notation, Place, Step},
};

/// A codec as written in the file.
#[derive(Deserialize)]
#[serde(expecting = "a codec")]
pub(in super::super) struct CodecLine {
    pub(in super::super) id: Option<String>,
    pub(in super::super) script: Option<String>,
    pub(in super::super) script_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "dialect")]
    style: Option<Dialect>,
    #[serde(default)]
    examples: Vec<ExampleLine>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

/// An example as written in the file.
#[derive(Deserialize)]
#[serde(expecting = "an example")]
struct ExampleLine {
    #[serde(default, deserialize_with = "function")]
    kind: Option<Function>,
    port: Option<u8>,
    bytes_hex: Option<String>,
    #[serde(default, deserialize_with = "maybe_null")]
    input_obj: Option<Value>,
    extra: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "maybe_null")]
    expected: Option<Value>,
    #[serde(default, deserialize_with = "by_name")]
    outcome: Option<ExpectedOutcome>,
    #[serde(default, deserialize_with = "not_null")]
    oracle_ok: Option<bool>,
    #[serde(default, deserialize_with = "maybe_null")]
    oracle: Option<Value>,
    #[serde(default, deserialize_with = "by_name")]
    oracle_outcome: Option<ExpectedOutcome>,
    #[serde(default, deserialize_with = "by_names")]
    env: Option<Vec<Dependency>>,
    #[serde(default, deserialize_with = "by_name")]
    quickjs: Option<QuickJs>,
    #[serde(default, rename = "match", deserialize_with = "by_name")]
    comparison: Option<Comparison>,
    desc: Option<String>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

/// The end of a call.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExpectedOutcome {
    Value,
    Undefined,
    Throws,
    Timeout,
}

/// Leniency in comparing results. Member order and the tenth digit of numbers never count, so two have no effect.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Comparison {
    KeyOrder,
    #[serde(rename = "float-1e-9")]
    Float,
    ModuloNullOrEmpty,
}

/// Dependencies of a result besides its input. The time zone is always UTC.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dependency {
    Tz,
    Now,
    Random,
}

/// Known differences between QuickJS and the engine that the example was written for.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum QuickJs {
    Differs,
}

/// Keeps null, where the default would read it as an absent member.
fn maybe_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Refuses null, where the default would read it as an absent member.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Option::deserialize(deserializer)?;
    value.map(Some).ok_or_else(|| D::Error::custom("null has no meaning here, omit the member"))
}

/// A variant by its name; null is refused. The parser takes another value than a text for wrong syntax.
fn by_name<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let name: Option<String> = not_null(deserializer)?;
    name.map(|name| T::deserialize(name.into_deserializer())).transpose()
}

/// The same for a list of them.
fn by_names<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Vec<T>>, D::Error> {
    let names: Option<Vec<String>> = not_null(deserializer)?;
    let variants =
        |names: Vec<String>| names.into_iter().map(|name| T::deserialize(name.into_deserializer())).collect();
    names.map(variants).transpose()
}

/// A function by its name; null is refused.
fn function<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Function>, D::Error> {
    let name: String = not_null(deserializer)?.unwrap_or_default();
    kind(&name).map(Some).ok_or_else(|| {
        let names: Vec<_> = KINDS.iter().map(|(_, name)| format!("`{name}`")).collect();
        D::Error::custom(format_args!("unknown variant `{name}`, expected one of {}", names.join(", ")))
    })
}

/// A dialect by its name; null is none.
fn dialect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Dialect>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let found = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
    found.map(Some).ok_or_else(|| D::Error::unknown_variant(&name, &["ts013", "v2", "chirpstack3"]))
}

impl CodecLine {
    /// The names of unknown members, of the codec and of its examples.
    pub(in super::super) fn unknown_members(&self) -> Result<BTreeSet<String>, String> {
        let mut names: BTreeSet<String> = self.unknown.names(OF_CODECS)?.cloned().collect();
        for (index, example) in self.examples.iter().enumerate() {
            let unknown = example.unknown.names(OF_EXAMPLES);
            names.extend(unknown.map_err(|reason| in_example(index, &reason))?.cloned());
        }
        Ok(names)
    }

    /// `codec` with its examples, or a description of their fault.
    pub(in super::super) fn into_codec(self, codec: Codec, place: &Place) -> Result<Codec, String> {
        if self.examples.len() > EXAMPLES_MAX {
            return Err(format!("it has more than {EXAMPLES_MAX} examples"));
        }
        let examples = self.examples.into_iter().enumerate().map(|(index, line)| {
            let can_replace = line.oracle_ok.is_none() && line.outcome.is_none();
            let path = vec![Step::name("examples"), Step::Index(index), Step::name("expected")];
            let expectation = Expectation { notation: Notation::JsonLine, path, hex: false };
            let place = Place { expectation: can_replace.then_some(expectation), ..place.clone() };
            let example = line.into_example().map_err(|reason| in_example(index, &reason))?;
            Ok(Example { place: Some(place), ..example })
        });
        Ok(Codec { dialect: self.style, examples: examples.collect::<Result<_, String>>()?, ..codec })
    }
}

fn in_example(index: usize, reason: &str) -> String {
    format!("example {}: {reason}", index + 1)
}

impl ExampleLine {
    fn into_example(self) -> Result<Example, String> {
        let function = self.kind.unwrap_or(Function::Decoder);
        let input = self.input(function);
        let time_ms = self.time_ms();
        let stated = expectation(["expected", "outcome"], self.expected, self.outcome)?;
        let oracle = expectation(["oracle", "oracle_outcome"], self.oracle, self.oracle_outcome)?;
        let has_oracle = !matches!(oracle, Expected::Unknown);
        if has_oracle && self.oracle_ok.is_none() {
            return Err("`oracle_ok` is missing: set it to false where the oracle is right".to_owned());
        }
        let depends_on = |dependency| self.env.iter().flatten().any(|name| *name == dependency);
        let excluded = if depends_on(Dependency::Now) {
            Some(Excluded::Now)
        } else if depends_on(Dependency::Random) {
            Some(Excluded::Random)
        } else if self.quickjs.is_some() && !matches!(stated, Expected::Timeout) {
            Some(Excluded::Engine)
        } else {
            (self.oracle_ok == Some(false) && !has_oracle).then_some(Excluded::Unsound)
        };
        Ok(Example {
            description: self.desc.unwrap_or_default(),
            port: self.port.unwrap_or(0),
            extra: self.extra.unwrap_or_default(),
            time_ms,
            expected: if self.oracle_ok == Some(false) { oracle } else { stated },
            tolerance: match self.comparison {
                Some(Comparison::ModuloNullOrEmpty) => Tolerance::Empty,
                _ => Tolerance::None,
            },
            excluded,
            ..Example::new(function, input?)
        })
    }

    fn input(&self, function: Function) -> Result<Input, String> {
        let takes_bytes = takes_bytes(function);
        match (&self.bytes_hex, &self.input_obj) {
            (Some(_), Some(_)) => Err("it has both `bytes_hex` and `input_obj`".to_owned()),
            (Some(digits), _) if takes_bytes => match digits.parse() {
                Ok(HexBytes(bytes)) => Ok(Input::Bytes(bytes)),
                Err(error) => Err(format!("`bytes_hex` not valid: {error}")),
            },
            (_, Some(json)) if !takes_bytes => Ok(Input::Json(json.clone())),
            _ if takes_bytes => Err("`bytes_hex` is missing".to_owned()),
            _ => Err("`input_obj` is missing".to_owned()),
        }
    }

    fn time_ms(&self) -> i64 {
        let received = self.extra.as_ref().and_then(|extra| extra.get("recvTime")).and_then(Value::as_str);
        // Functions may also get a `recvTime` that is not a valid time.
        let time = received.and_then(|text| text.parse::<Timestamp>().ok());
        time.map_or(DEFAULT_TIME_MS, Timestamp::as_millis)
    }
}

/// Combines a value and an outcome. Contradictions are errors, or half of the example would be ignored.
fn expectation(names: [&str; 2], value: Option<Value>, outcome: Option<ExpectedOutcome>) -> Result<Expected, String> {
    let [value_name, outcome_name] = names;
    match (outcome, value) {
        (None, None) => Ok(Expected::Unknown),
        (None | Some(ExpectedOutcome::Value), Some(value)) => Ok(Expected::Value(value)),
        (Some(ExpectedOutcome::Value), None) => {
            Err(format!("`{outcome_name}` is `value`, but `{value_name}` is missing"))
        }
        // Some authors write null for no value.
        (Some(ExpectedOutcome::Undefined), None | Some(Value::Null)) => Ok(Expected::Undefined),
        (Some(ExpectedOutcome::Throws), None | Some(Value::Null)) => Ok(Expected::Throws),
        (Some(ExpectedOutcome::Timeout), None | Some(Value::Null)) => Ok(Expected::Timeout),
        (Some(_), Some(_)) => Err(format!("it has both `{value_name}` and an `{outcome_name}` without a value")),
    }
}
