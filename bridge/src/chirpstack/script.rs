//! A codec in JavaScript, called as ChirpStack 4 calls it.

use std::{sync::Arc, time::Duration};

use runtime::{
    Call, CallOutcome, EntryPoint, Failure, Function, Functions, Limits, LoadRequest, Pool, Priority, Slot, Sources,
    SourcesHash, Tenant, Value,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{OnceCell, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use super::outcome::{CodecError, Decoded, Encoded, Input};

/// Maximum number of messages of one device profile that are in the sandbox's queue. Others wait here, so that the
/// queue has room for all profiles.
const QUEUED_MAX: usize = 64;

/// The pause while the sandbox's queue is full.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

const DECODER: &str = "decodeUplink";
const ENCODER: &str = "encodeDownlink";

/// A script, loaded when its first message comes.
pub(super) struct Script {
    sources: Sources,
    hash: SourcesHash,
    tenant: Tenant,
    pool: Arc<Pool>,
    wait_max: Duration,
    slots: Semaphore,
    loaded: OnceCell<Result<Functions, Failure>>,
}

/// What `decodeUplink` and `encodeDownlink` return. Members of other types count as missing, as in ChirpStack.
#[derive(Deserialize)]
struct Returned<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    bytes: Option<&'a RawValue>,
    #[serde(borrow, rename = "fPort")]
    port: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    #[serde(borrow)]
    warnings: Option<&'a RawValue>,
}

impl Script {
    /// A script of the device profile `profile_id`, whose messages wait for a sandbox for `wait_max` at most.
    pub(super) fn new(text: String, profile_id: &str, pool: Arc<Pool>, wait_max: Duration) -> Self {
        let sources = Sources { dialect: Some(runtime::Dialect::Ts013), ..Sources::single_file(text) };
        Self {
            hash: sources.hash(),
            sources,
            tenant: Tenant { id: profile_id.into(), priority: Priority::Live },
            pool,
            wait_max,
            slots: Semaphore::new(QUEUED_MAX),
            loaded: OnceCell::new(),
        }
    }

    /// Calls `decodeUplink({bytes, fPort, recvTime, variables})`.
    pub(super) async fn decode(&self, payload: &[u8], input: &Input<'_>) -> Result<Decoded, CodecError> {
        let (json, outcome) = self.call(Function::Decoder, payload.to_vec(), input).await?;
        let returned = Returned::read(&json, DECODER)?;
        let data = returned.data.filter(|data| data.get().starts_with('{'));
        let object = data.ok_or(CodecError::Missing { function: DECODER, member: "data" })?;
        let mut warnings = returned.warnings();
        warnings.extend(outcome.warnings);
        Ok(Decoded { object: Some(object.to_owned()), warnings, fuel: outcome.fuel, elapsed: outcome.elapsed })
    }

    /// Calls `encodeDownlink({data, fPort, variables})`.
    pub(super) async fn encode(&self, object: &str, input: &Input<'_>) -> Result<Encoded, CodecError> {
        let (json, _) = self.call(Function::Encoder, object.as_bytes().to_vec(), input).await?;
        let returned = Returned::read(&json, ENCODER)?;
        let bytes: Option<Vec<f64>> = parse(returned.bytes);
        let bytes = bytes.ok_or(CodecError::Missing { function: ENCODER, member: "bytes" })?;
        let port: Option<f64> = parse(returned.port);
        // As ChirpStack does it: numbers are cut off and saturate.
        Ok(Encoded { bytes: bytes.into_iter().map(|byte| byte as u8).collect(), port: port.map(|port| port as u8) })
    }

    /// Runs one function; returns its result as JSON.
    async fn call(
        &self,
        function: Function,
        payload: Vec<u8>,
        input: &Input<'_>,
    ) -> Result<(Box<RawValue>, CallOutcome), CodecError> {
        let name = if function == Function::Encoder { ENCODER } else { DECODER };
        let deadline = Instant::now() + self.wait_max;
        let slot = timeout_at(deadline, self.slots.acquire()).await.map_err(|_| CodecError::Busy)?;
        let functions = self.load(deadline).await?.map_err(|failure| CodecError::failed(name, failure))?;
        let extra = format!(r#"{{"variables":{}}}"#, input.variables);
        let call = Call {
            entry_point: EntryPoint::SingleFunction,
            port: input.port,
            time_ms: input.time_ms,
            seed: input.seed,
            payload,
            extra,
            single_function: Some(function),
        };
        let mut outcome = self.run(functions, call, deadline).await?;
        drop(slot);
        crate::metrics::ran(outcome.fuel, outcome.elapsed);
        let nothing = Failure::malformed_reply(Slot::Decoder);
        match std::mem::replace(&mut outcome.result, Err(nothing)) {
            Ok(Value::Returned { json: Some(json) }) => Ok((json, outcome)),
            Ok(Value::Returned { json: None }) => Err(CodecError::Missing { function: name, member: "data" }),
            Ok(_) => Err(CodecError::failed(name, Failure::malformed_reply(Slot::Decoder))),
            Err(failure) => Err(CodecError::failed(name, failure)),
        }
    }

    async fn run(&self, functions: Functions, call: Call, deadline: Instant) -> Result<CallOutcome, CodecError> {
        loop {
            match self.pool.call(&self.tenant, functions.clone(), call.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(_) if Instant::now() < deadline => sleep(BUSY_PAUSE).await,
                Err(_) => return Err(CodecError::Busy),
            }
        }
    }

    /// The loaded functions, or why they cannot be loaded. A failure that may not happen again is not remembered.
    pub(super) async fn load(&self, deadline: Instant) -> Result<Result<Functions, Failure>, CodecError> {
        loop {
            let loaded = self.loaded.get_or_try_init(|| async {
                let loaded = self.pool.load(&self.tenant, self.load_request()).await;
                let loaded = loaded.map_err(|_| None)?;
                match loaded {
                    Err(failure) if failure.may_pass() => Err(Some(failure)),
                    loaded => Ok(loaded),
                }
            });
            match loaded.await {
                Ok(loaded) => return Ok(loaded.clone()),
                Err(Some(failure)) => return Ok(Err(failure)),
                Err(None) if Instant::now() < deadline => sleep(BUSY_PAUSE).await,
                Err(None) => return Err(CodecError::Busy),
            }
        }
    }

    fn load_request(&self) -> LoadRequest {
        let limits: Arc<Limits> = self.pool.engine().limits().clone();
        LoadRequest { sources: self.sources.clone(), hash: self.hash, limits, is_cached: true }
    }
}

impl<'a> Returned<'a> {
    /// Reads a returned object; `errors` make it a failure.
    fn read(json: &'a RawValue, function: &'static str) -> Result<Self, CodecError> {
        let member = if function == ENCODER { "bytes" } else { "data" };
        let returned: Self = serde_json::from_str(json.get()).map_err(|_| CodecError::Missing { function, member })?;
        let errors: Vec<String> = parse(returned.errors).unwrap_or_default();
        if errors.is_empty() { Ok(returned) } else { Err(CodecError::Errors { function, errors }) }
    }

    fn warnings(&self) -> Vec<String> {
        parse(self.warnings).unwrap_or_default()
    }
}

fn parse<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    value.and_then(|value| serde_json::from_str(value.get()).ok())
}
