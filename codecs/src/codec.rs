//! One codec: its source, loaded once per dialect, and how it runs a message.

use std::{sync::Arc, time::Duration};

use runtime::{
    Call, CallOutcome, Dialect, EntryPoint, Failure, Functions, LoadRequest, Pool, Priority, Slot, Sources, Tenant,
    Value,
};
use tokio::{
    sync::{OnceCell, Semaphore, SemaphorePermit},
    time::timeout,
};
use types::{Random, Timestamp};

use crate::{
    Error,
    cost::Cost,
    message::{CodecResult, Input, Message},
    metrics,
    name::CodecName,
};

/// Maximum number of messages of one codec in the sandbox's queue. Others wait here, so that the queue has room for
/// all.
const QUEUED_MAX: usize = 96;
/// Maximum wait of a message for its turn: short for one that comes alone, because its request holds a place of its
/// caller.
const WAIT_MAX_ALONE: Duration = Duration::from_millis(100);
const WAIT_MAX_IN_BATCH: Duration = Duration::from_secs(10);

/// Size of a request: one message, or several.
#[derive(Clone, Copy)]
pub(crate) enum Batch {
    Alone,
    Several,
}

/// One source of the directory. Each dialect of it is loaded once, when a message first needs it.
pub(crate) struct Codec {
    name: CodecName,
    text: String,
    tenant: Tenant,
    pool: Arc<Pool>,
    slots: Semaphore,
    /// One for a detected dialect, then one for each.
    loaded: [OnceCell<Result<Functions, Failure>>; 1 + Dialect::ALL.len()],
}

impl Codec {
    pub(crate) fn new(name: CodecName, text: String, pool: Arc<Pool>) -> Self {
        let tenant = Tenant::alone(name.as_str(), Priority::Live);
        Self { name, text, tenant, pool, slots: Semaphore::new(QUEUED_MAX), loaded: Default::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Checks that it can be loaded.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.functions(None).await.map(drop)
    }

    /// Returns the error of loading the codec, as far as that was tried.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.text.trim_ascii().is_empty() {
            return Some(Error::Empty(self.name.to_string()).to_string());
        }
        self.loaded[0].get()?.as_ref().err().map(ToString::to_string)
    }

    /// Decodes or encodes a message that arrived at `now`.
    pub(crate) async fn run(
        &self,
        (message, batch): (&Message, Batch),
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<CodecResult, Error> {
        let result = match self.slot(batch).await {
            Ok(_slot) => self.run_uncounted(message, now, random).await,
            Err(error) => Err(error),
        };
        metrics::message(match (&result, &message.input) {
            (Ok(_), Input::Payload(_)) => "decoded",
            (Ok(_), Input::Fields(_)) => "encoded",
            (Err(Error::Busy), _) => "busy",
            (Err(_), _) => "failed",
        });
        result
    }

    async fn slot(&self, batch: Batch) -> Result<SemaphorePermit<'_>, Error> {
        let wait_max = match batch {
            Batch::Alone => WAIT_MAX_ALONE,
            Batch::Several => WAIT_MAX_IN_BATCH,
        };
        timeout(wait_max, self.slots.acquire()).await.ok().and_then(Result::ok).ok_or(Error::Busy)
    }

    async fn run_uncounted(
        &self,
        message: &Message,
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<CodecResult, Error> {
        let functions = self.functions(message.dialect).await?;
        let (entry_point, payload, slot_used, direction) = match &message.input {
            Input::Payload(bytes) => (EntryPoint::Uplink, bytes.clone(), Slot::Decoder, "decode"),
            Input::Fields(fields) => {
                (EntryPoint::EncodeDownlink, fields.get().as_bytes().to_vec(), Slot::Encoder, "encode")
            }
        };
        if functions.dialect(slot_used).is_none() {
            return Err(Error::NoFunction { name: self.name.to_string(), direction });
        }
        let call = Call {
            entry_point,
            port: message.port,
            time_ms: message.time.unwrap_or(now).as_millis(),
            seed: u64::from_le_bytes(random.array()),
            payload,
            extra: message.extra(),
            single_function: None,
        };
        let outcome = self.pool.call(&self.tenant, functions, call).await.map_err(|_| Error::Busy)?;
        metrics::ran(outcome.fuel, outcome.elapsed);
        self.read(outcome)
    }

    fn read(&self, outcome: CallOutcome) -> Result<CodecResult, Error> {
        let cost = Cost::of(&outcome);
        let failure = match outcome.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                return Ok(CodecResult::decoded(json, normalized, valid, outcome.warnings, cost));
            }
            Ok(Value::Bytes { bytes, port }) => return Ok(CodecResult::encoded(&bytes, port, outcome.warnings, cost)),
            Ok(Value::Returned { .. }) => Failure::malformed_reply(Slot::Decoder),
            Err(failure) => failure,
        };
        Err(Error::Codec { name: self.name.to_string(), failure, cost: Box::new(cost) })
    }

    /// The loaded functions. A failure that may not happen again is not remembered.
    async fn functions(&self, dialect: Option<Dialect>) -> Result<Functions, Error> {
        if self.text.trim_ascii().is_empty() {
            return Err(Error::Empty(self.name.to_string()));
        }
        let loaded = self.loaded[dialect.map_or(0, |dialect| dialect as usize)].get_or_try_init(|| async {
            let sources = Sources { dialect, ..Sources::single_file(self.text.clone()) };
            let limits = self.pool.engine().limits().clone();
            let request = LoadRequest { hash: sources.hash(), sources, limits, is_cached: true };
            match self.pool.load(&self.tenant, request).await.map_err(|_| Error::Busy)? {
                Err(failure) if failure.may_pass() => Err(Error::cannot_load(&self.name, failure)),
                loaded => Ok(loaded),
            }
        });
        loaded.await?.clone().map_err(|failure| Error::cannot_load(&self.name, failure))
    }
}
