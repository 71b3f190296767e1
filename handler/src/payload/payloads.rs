//! From payload to fields and back: the application's functions in a sandbox, or Cayenne LPP.

use std::time::Duration;

use runtime::{Asker, Call, Entry, Failure, Functions, LogEntry, Pool, Report, Urgency, Value};
use serde_json::value::RawValue;
use types::AppId;

use super::{cayenne, functions_cache::Loaded};
use crate::{
    Error,
    application::{Application, Conversion, Outline},
    error::Fault,
    settings::Settings,
    uplink::Payload,
};

/// What became of a payload.
#[derive(Debug, Default)]
pub struct Decoded {
    /// A JSON object; none when nothing was converted, or nothing came of it.
    pub fields: Option<Box<RawValue>>,
    /// What `normalizeUplink` made of them, if the decoder's text has one.
    pub normalized: Option<Box<RawValue>>,
    /// What the validator, if there is one, made of the fields.
    pub verdict: Verdict,
    /// Why there are no fields although there should be.
    pub problem: Option<Problem>,
    /// What is odd about the fields.
    pub warnings: Vec<String>,
    /// What the functions wrote to the console.
    pub logs: Vec<LogEntry>,
    /// What it cost.
    pub cost: Cost,
}

/// Whether a message goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was converted.
    #[default]
    Unconverted,
    /// It was, and nothing speaks against it.
    Valid,
    /// The validator returned false.
    Invalid,
}

/// What became of the fields of a downlink.
#[derive(Debug, Default)]
pub struct Encoded {
    /// The bytes to send.
    pub payload: Vec<u8>,
    /// The port that the encoder asks for, if it does.
    pub port: Option<u8>,
    /// What the encoder wrote to the console.
    pub logs: Vec<LogEntry>,
    /// What it cost.
    pub cost: Cost,
}

/// Why a payload could not be understood.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A payload function failed.
    #[error("{0}")]
    Function(Failure),
    /// The payload is no Cayenne LPP.
    #[error("{0}")]
    CayenneLpp(Error),
}

impl Problem {
    /// The problem as the answer to whoever tried the functions of `application`, with what they logged and cost.
    pub(crate) fn into_error(self, application: &Application, logs: Vec<LogEntry>, cost: Cost) -> Error {
        match self {
            Self::Function(failure) => fault(failure, application, logs, cost),
            Self::CayenneLpp(error) => error,
        }
    }
}

/// What a message cost in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Units of fuel: the same for the same message on every machine.
    pub fuel: u64,
    /// From the pristine sandbox to the result.
    pub elapsed: Duration,
}

impl Cost {
    /// The time in whole microseconds.
    pub fn microseconds(&self) -> u64 {
        u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Turns payloads into fields.
pub struct Payloads {
    pool: Pool,
    /// What messages meet.
    loaded: Loaded,
    /// What somebody tries.
    tried: Loaded,
}

impl Payloads {
    /// Runs functions in `pool`, and keeps them loaded and within limits as `settings` say.
    pub fn new(pool: Pool, settings: &Settings) -> Result<Self, Error> {
        let limits = pool.engine().limits();
        let (loaded, tried) = (Loaded::new(settings, limits)?, Loaded::tried(settings, limits)?);
        Ok(Self { pool, loaded, tried })
    }

    /// Checks that functions can be used; [`Error::Function`] says what is wrong with them.
    pub async fn check(&self, application: &Application) -> Result<(), Error> {
        if application.functions.is_empty() {
            return Ok(());
        }
        let asker = asker(&application.app_id, Urgency::Dry);
        let functions = self.loaded.get(&asker, application, &self.pool).await?;
        functions.map(drop).map_err(|failure| unloadable(failure, application))
    }

    /// Understands a payload as the application wants it to be; only a full queue is an error.
    pub async fn decode(
        &self,
        application: &Application,
        payload: &Payload,
        urgency: Urgency,
    ) -> Result<Decoded, Error> {
        if let Some(decoded) = self.decode_loaded(&application.outline(), payload, urgency).await? {
            return Ok(decoded);
        }
        let asker = asker(&application.app_id, urgency);
        let functions = self.load(&asker, application).await?;
        self.run(&asker, functions, payload).await
    }

    /// The same without the texts of functions; none when they are needed, because nobody has loaded them.
    pub async fn decode_loaded(
        &self,
        outline: &Outline,
        payload: &Payload,
        urgency: Urgency,
    ) -> Result<Option<Decoded>, Error> {
        match outline.conversion() {
            Conversion::None => Ok(Some(Decoded::default())),
            Conversion::CayenneLpp => decode_cayenne(bytes(payload)).map(Some),
            Conversion::Custom(_) if !outline.has_uplink_function => Ok(Some(Decoded::default())),
            Conversion::Custom(_) => match self.loaded.find(&outline.app_id, outline.functions_hash) {
                Some(functions) => self.run(&asker(&outline.app_id, urgency), functions, payload).await.map(Some),
                None => Ok(None),
            },
        }
    }

    /// Writes the bytes of `fields` as the application wants it done; [`Error::Function`] when its encoder fails.
    pub async fn encode(
        &self,
        application: &Application,
        fields: &str,
        payload: &Payload,
        urgency: Urgency,
    ) -> Result<Encoded, Error> {
        let object = serde_json::from_str(fields).map_err(|error| Error::invalid("Fields", error))?;
        match application.conversion() {
            Conversion::None => Ok(Encoded::default()),
            Conversion::CayenneLpp => Ok(Encoded { payload: cayenne::encode(&object), ..Encoded::default() }),
            Conversion::Custom(_) if application.functions.encoder.is_empty() => {
                Err(Error::invalid("Downlink Payload", "fields supplied, but no Encoder function set"))
            }
            Conversion::Custom(_) => {
                let asker = asker(&application.app_id, urgency);
                let functions = self.load(&asker, application).await?;
                let functions = functions.map_err(|failure| unloadable(failure, application))?;
                let call = call(Entry::EncodeDownlink, payload, fields.as_bytes());
                let report = self.pool.call(&asker, functions, call).await?;
                let cost = Cost { fuel: report.fuel, elapsed: report.elapsed };
                match report.result {
                    Ok(Value::Bytes { bytes, port }) => Ok(Encoded { payload: bytes, port, logs: report.logs, cost }),
                    // A downlink answers with bytes; anything else would be the sandbox's mistake.
                    Ok(_) => Ok(Encoded::default()),
                    Err(failure) => Err(fault(failure, application, report.logs, cost)),
                }
            }
        }
    }

    async fn load(&self, asker: &Asker, application: &Application) -> Result<Result<Functions, Failure>, Error> {
        let place = match asker.urgency {
            Urgency::Live => &self.loaded,
            Urgency::Dry => &self.tried,
        };
        Ok(place.get(asker, application, &self.pool).await?)
    }

    async fn run(
        &self,
        asker: &Asker,
        functions: Result<Functions, Failure>,
        payload: &Payload,
    ) -> Result<Decoded, Error> {
        match functions {
            Ok(functions) => {
                let call = call(Entry::Uplink, payload, bytes(payload));
                Ok(Decoded::from(self.pool.call(asker, functions, call).await?))
            }
            Err(failure) => Ok(Decoded::failed(Problem::Function(failure))),
        }
    }
}

/// Turns of sandboxes are shared between applications.
fn asker(app_id: &AppId, urgency: Urgency) -> Asker {
    Asker { tenant: app_id.as_str().into(), urgency }
}

fn bytes(payload: &Payload) -> &[u8] {
    payload.bytes.as_deref().unwrap_or_default()
}

fn fault(failure: Failure, application: &Application, logs: Vec<LogEntry>, cost: Cost) -> Error {
    Error::Function(Box::new(Fault::new(failure, &application.sources(), logs, cost)))
}

fn unloadable(failure: Failure, application: &Application) -> Error {
    fault(failure, application, Vec::new(), Cost::default())
}

fn call(entry: Entry, payload: &Payload, bytes: &[u8]) -> Call {
    Call {
        entry,
        port: payload.port,
        time_ms: payload.received.as_millis(),
        seed: payload.seed,
        payload: bytes.to_vec(),
        trial: None,
    }
}

fn decode_cayenne(bytes: &[u8]) -> Result<Decoded, Error> {
    match cayenne::decode(bytes) {
        Ok(values) if values.is_empty() => Ok(Decoded { verdict: Verdict::Valid, ..Decoded::default() }),
        Ok(values) => {
            let fields = Some(serde_json::value::to_raw_value(&values)?);
            Ok(Decoded { fields, verdict: Verdict::Valid, ..Decoded::default() })
        }
        Err(error) => Ok(Decoded::failed(Problem::CayenneLpp(error))),
    }
}

impl Decoded {
    fn failed(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

impl From<Report> for Decoded {
    fn from(report: Report) -> Self {
        let cost = Cost { fuel: report.fuel, elapsed: report.elapsed };
        let decoded = match report.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                let fields = (json.get() != "{}" && json.get() != "null").then_some(json);
                let verdict = if valid { Verdict::Valid } else { Verdict::Invalid };
                Self { fields, normalized, verdict, ..Self::default() }
            }
            // An uplink answers with fields; anything else would be the sandbox's mistake.
            Ok(Value::Bytes { .. } | Value::Returned { .. }) => Self::default(),
            Err(failure) => Self::failed(Problem::Function(failure)),
        };
        Self { warnings: report.warnings, logs: report.logs, cost, ..decoded }
    }
}
