//! One codec: its source, loaded once per dialect, and how it runs a message.

use std::{sync::Arc, time::Duration};

use runtime::{
    Call, CallOutcome, Dialect, EntryPoint, Failure, Functions, LoadRequest, Pool, Priority, Slot, Sources, Tenant,
    Value,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::timeout,
};
use types::{Random, Timestamp};

use crate::{
    Error,
    cost::Cost,
    message::{Input, Message, Outcome},
    metrics,
    name::CodecName,
};

/// Maximum number of messages of one codec in the sandbox's queue. Others wait here, so that the queue has room for
/// all.
const QUEUED_MAX: usize = 64;
/// How long a message may wait here.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A codec.
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
        let tenant = Tenant { id: name.as_str().into(), priority: Priority::Live };
        Self { name, text, tenant, pool, slots: Semaphore::new(QUEUED_MAX), loaded: Default::default() }
    }

    pub(crate) fn name(&self) -> &CodecName {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Checks that it can be loaded.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.functions(None).await.map(drop)
    }

    /// Why it cannot be loaded, as far as that was tried.
    pub(crate) fn problem(&self) -> Option<&Failure> {
        self.loaded[0].get()?.as_ref().err()
    }

    /// Decodes or encodes a message that arrived at `now`.
    pub(crate) async fn run(&self, message: &Message, now: Timestamp, random: &dyn Random) -> Result<Outcome, Error> {
        let result = self.run_uncounted(message, now, random).await;
        metrics::message(match (&result, &message.input) {
            (Ok(_), Input::Payload(_)) => "decoded",
            (Ok(_), Input::Fields(_)) => "encoded",
            (Err(Error::Busy), _) => "busy",
            (Err(_), _) => "failed",
        });
        result
    }

    async fn run_uncounted(&self, message: &Message, now: Timestamp, random: &dyn Random) -> Result<Outcome, Error> {
        let slot = timeout(WAIT_MAX, self.slots.acquire()).await.map_err(|_| Error::Busy)?;
        let functions = self.functions(message.dialect).await?;
        let (entry_point, payload) = match &message.input {
            Input::Payload(bytes) => (EntryPoint::Uplink, bytes.clone()),
            Input::Fields(fields) => (EntryPoint::EncodeDownlink, fields.get().as_bytes().to_vec()),
        };
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
        drop(slot);
        metrics::ran(outcome.fuel, outcome.elapsed);
        self.read(outcome)
    }

    fn read(&self, outcome: CallOutcome) -> Result<Outcome, Error> {
        let cost = Cost::of(&outcome);
        let failure = match outcome.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                return Ok(Outcome::decoded(json, normalized, valid, outcome.warnings, cost));
            }
            Ok(Value::Bytes { bytes, port }) => return Ok(Outcome::encoded(&bytes, port, outcome.warnings, cost)),
            Ok(Value::Returned { .. }) => Failure::malformed_reply(Slot::Decoder),
            Err(failure) => failure,
        };
        Err(Error::Codec { name: self.name.to_string(), failure, cost: Box::new(cost) })
    }

    /// The loaded functions. A failure that may not happen again is not remembered.
    async fn functions(&self, dialect: Option<Dialect>) -> Result<Functions, Error> {
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
