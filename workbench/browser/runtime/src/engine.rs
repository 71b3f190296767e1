//! Loads functions and calls them, in the sandbox of the page.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::contract::input;
use crate::{
    Call, CallOutcome, Dialect, EntryPoint, Failure, FailureKind, Function, Limits, LogEntry, LogLevel, Slot, Sources,
    Value, page,
};

/// Evaluates sources within limits.
#[derive(Debug)]
pub struct Engine {
    limits: Arc<Limits>,
    /// What was loaded last: the same sources are often loaded twice in a row.
    last: Mutex<Option<(Sources, Functions)>>,
}

impl Engine {
    /// An engine whose functions have these limits, unless they have their own.
    pub fn new(limits: Limits) -> Self {
        Self { limits: Arc::new(limits), last: Mutex::default() }
    }

    /// The limits of function sets that have no limits of their own.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// A sandbox.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox
    }

    /// Evaluates sources, unless they are those that were loaded last.
    pub fn load(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, functions)) = &*last
            && known == sources
            && Arc::ptr_eq(&functions.0.limits, limits)
        {
            return Ok(functions.clone());
        }
        let functions = self.load_uncached(sources, limits)?;
        *last = Some((sources.clone(), functions.clone()));
        Ok(functions)
    }

    /// Evaluates sources.
    pub fn load_uncached(&self, sources: &Sources, limits: &Arc<Limits>) -> Result<Functions, Failure> {
        let request = Request::Load { sources: Texts::of(sources), limits };
        match page::ask(&request) {
            Some(Reply::Loaded(loaded)) => Ok(Functions(Arc::new(Loaded { page: loaded, limits: Arc::clone(limits) }))),
            Some(Reply::Failed(failure)) => Err(failure.read(Slot::Decoder)),
            _ => Err(Failure::malformed_reply(Slot::Decoder)),
        }
    }
}

/// Functions that the page has evaluated. Cheap to clone.
#[derive(Clone)]
pub struct Functions(Arc<Loaded>);

struct Loaded {
    page: LoadedReply,
    limits: Arc<Limits>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // There is nothing to read.
        let _: Option<Reply> = page::ask(&Request::Forget { functions: self.page.functions });
    }
}

impl Functions {
    /// The dialect of the function in `slot`; `None` if there is no function.
    pub fn dialect(&self, slot: Slot) -> Option<Dialect> {
        let names = &self.0.page.dialects;
        names.get(slot as usize).and_then(Option::as_deref).and_then(Dialect::from_name)
    }

    /// The fuel that evaluating the sources took.
    pub fn load_fuel(&self) -> u64 {
        self.0.page.load_fuel
    }

    /// The memory that evaluating the sources changed, in bytes.
    pub fn idle_bytes(&self) -> usize {
        self.0.page.kept_bytes
    }

    /// The limits for loading and for every message.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    fn first_slot(&self) -> Slot {
        Slot::ALL.into_iter().find(|slot| self.dialect(*slot).is_some()).unwrap_or(Slot::Decoder)
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").field("dialects", &self.0.page.dialects).finish()
    }
}

/// The sandbox of the page: every message starts from exactly the memory that loading its functions left.
#[derive(Debug)]
pub struct Sandbox;

impl Sandbox {
    /// Runs one message through `functions`, within their limits.
    pub fn call(&mut self, functions: &Functions, call: &Call) -> CallOutcome {
        let first = match (call.entry_point, &call.single_function) {
            (EntryPoint::SingleFunction, Some(function)) => function.slot(),
            (EntryPoint::Uplink | EntryPoint::SingleFunction, _) => functions.first_slot(),
            (EntryPoint::EncodeDownlink | EntryPoint::DecodeDownlink, _) => Slot::Encoder,
        };
        if let Err(failure) = input::check(call, first, functions.limits()) {
            return CallOutcome::new(Err(failure));
        }
        let request = Request::Call { functions: functions.0.page.functions, call: PageCall::of(call) };
        let mut outcome = match page::ask(&request) {
            Some(Reply::Called(called)) => called.read(first),
            _ => CallOutcome::new(Err(Failure::malformed_reply(first))),
        };
        if let Err(failure) = &mut outcome.result {
            failure.function = call.function();
        }
        outcome
    }
}

/// What the page is asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Request<'a> {
    Load { sources: Texts<'a>, limits: &'a Limits },
    Call { functions: u32, call: PageCall<'a> },
    Forget { functions: u32 },
}

/// Sources as the page has them.
#[derive(Serialize)]
struct Texts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    decoder: &'a str,
    converter: &'a str,
    validator: &'a str,
    encoder: &'a str,
    dialect: Option<&'static str>,
}

impl<'a> Texts<'a> {
    fn of(sources: &'a Sources) -> Self {
        Self {
            text: sources.is_single_file.then_some(&sources.decoder),
            decoder: if sources.is_single_file { "" } else { &sources.decoder },
            converter: &sources.converter,
            validator: &sources.validator,
            encoder: &sources.encoder,
            dialect: sources.dialect.map(Dialect::name),
        }
    }
}

/// A call as the page has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageCall<'a> {
    entry_point: &'static str,
    single_function: Option<&'static str>,
    port: u8,
    time_ms: i64,
    seed: u64,
    payload: &'a [u8],
    extra: &'a str,
}

impl<'a> PageCall<'a> {
    fn of(call: &'a Call) -> Self {
        Self {
            entry_point: match call.entry_point {
                EntryPoint::Uplink => "uplink",
                EntryPoint::EncodeDownlink => "encodeDownlink",
                EntryPoint::DecodeDownlink => "decodeDownlink",
                EntryPoint::SingleFunction => "singleFunction",
            },
            single_function: call.single_function.map(|function| match function {
                Function::Decoder => "uplink",
                Function::Converter => "convert",
                Function::Validator => "validate",
                Function::Encoder => "downlink-encode",
                Function::DecodeDownlink => "downlink-decode",
                Function::NormalizeUplink => "uplink-normalize",
            }),
            port: call.port,
            time_ms: call.time_ms,
            seed: call.seed,
            payload: &call.payload,
            extra: &call.extra,
        }
    }
}

/// What the page answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Reply {
    Loaded(LoadedReply),
    Failed(FailureReply),
    Called(CalledReply),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadedReply {
    functions: u32,
    dialects: Vec<Option<String>>,
    load_fuel: u64,
    kept_bytes: usize,
}

#[derive(Deserialize)]
struct FailureReply {
    slot: String,
    kind: String,
    message: String,
    line: Option<u32>,
    column: Option<u32>,
}

#[derive(Deserialize)]
struct CalledReply {
    value: Option<ValueReply>,
    failure: Option<FailureReply>,
    warnings: Vec<String>,
    logs: Vec<LogReply>,
    fuel: u64,
    milliseconds: f64,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum ValueReply {
    Fields { json: String, normalized: Option<String>, valid: bool },
    Bytes { bytes: Vec<u8>, port: Option<u8> },
    Returned { json: Option<String> },
}

#[derive(Deserialize)]
struct LogReply {
    slot: String,
    level: String,
    fields: Vec<String>,
}

impl FailureReply {
    fn read(self, first: Slot) -> Failure {
        let Some(kind) = (0..=u8::MAX).map_while(FailureKind::from_byte).find(|kind| kind.name() == self.kind) else {
            return Failure::malformed_reply(first);
        };
        let failure = Failure::new(slot(&self.slot).unwrap_or(first), kind, self.message);
        Failure { line: self.line, column: self.column, ..failure }
    }
}

impl CalledReply {
    fn read(self, first: Slot) -> CallOutcome {
        let result = match (self.value, self.failure) {
            (_, Some(failure)) => Err(failure.read(first)),
            (Some(value), None) => value.read().ok_or_else(|| Failure::malformed_reply(first)),
            (None, None) => Err(Failure::malformed_reply(first)),
        };
        CallOutcome {
            warnings: self.warnings,
            logs: self.logs.into_iter().filter_map(LogReply::read).collect(),
            fuel: self.fuel,
            elapsed: Duration::try_from_secs_f64(self.milliseconds / 1e3).unwrap_or_default(),
            ..CallOutcome::new(result)
        }
    }
}

impl ValueReply {
    /// None if what should be JSON is none.
    fn read(self) -> Option<Value> {
        let raw = |json: String| RawValue::from_string(json).ok();
        // Outside: whether there is any; inside: whether it is JSON.
        let optional = |json: Option<String>| json.map_or(Some(None), |json| raw(json).map(Some));
        Some(match self {
            Self::Fields { json, normalized, valid } => {
                Value::Fields { json: raw(json)?, normalized: optional(normalized)?, valid }
            }
            Self::Bytes { bytes, port } => Value::Bytes { bytes, port },
            Self::Returned { json } => Value::Returned { json: optional(json)? },
        })
    }
}

impl LogReply {
    fn read(self) -> Option<LogEntry> {
        let level = match self.level.as_str() {
            "debug" => LogLevel::Debug,
            "info" => LogLevel::Info,
            "warn" => LogLevel::Warn,
            "error" => LogLevel::Error,
            _ => return None,
        };
        Some(LogEntry { slot: slot(&self.slot)?, level, fields: self.fields })
    }
}

fn slot(name: &str) -> Option<Slot> {
    Slot::ALL.into_iter().find(|slot| slot.name() == name)
}
