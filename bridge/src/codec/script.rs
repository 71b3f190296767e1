//! A codec in JavaScript: loaded when its first message comes, and run in the sandbox.

use std::{mem, sync::Arc, time::Duration};

use runtime::{
    Call, CallOutcome, Failure, Functions, Limits, LoadRequest, Pool, Priority, Sources, SourcesHash, Tenant,
};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::{Instant, sleep, timeout_at},
};

use crate::codec::outcome::{CodecError, Run};

/// Maximum number of messages of one codec that are in the sandbox's queue. Others wait here, so that the queue has
/// room for all codecs.
const QUEUED_MAX: usize = 64;

/// The pause while the sandbox's queue is full.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A script, loaded when its first message comes.
pub struct Script {
    sources: Sources,
    hash: SourcesHash,
    tenant: Tenant,
    pool: Arc<Pool>,
    wait_max: Duration,
    slots: Semaphore,
    loaded: OnceCell<Result<Functions, Failure>>,
}

impl Script {
    /// The script of the codec `id`, whose messages wait for a sandbox for `wait_max` at most.
    pub fn new(sources: Sources, id: &str, pool: Arc<Pool>, wait_max: Duration) -> Self {
        Self {
            hash: sources.hash(),
            sources,
            tenant: Tenant::alone(id, Priority::Live),
            pool,
            wait_max,
            slots: Semaphore::new(QUEUED_MAX),
            loaded: OnceCell::new(),
        }
    }

    /// Runs a message; `name` is the function that a failure to load is reported for. Fills `ran` with what is known of
    /// the run, and with its logs.
    pub async fn call(&self, name: &'static str, call: Call, ran: &mut Run) -> Result<CallOutcome, CodecError> {
        let deadline = Instant::now() + self.wait_max;
        let _slot = timeout_at(deadline, self.slots.acquire()).await.map_err(|_| CodecError::Busy)?;
        let loaded = self.load(deadline).await?;
        let outcome = match loaded {
            Ok(functions) => Ok(self.run(functions, &call, deadline).await?),
            Err(failure) => Err(CodecError::failed(name, failure)),
        };
        *ran = Run { functions: Some(self.hash), seed: call.seed, extra: call.extra, ..Run::default() };
        let mut outcome = outcome?;
        crate::metrics::ran(outcome.fuel, outcome.elapsed);
        (ran.logs, ran.fuel, ran.elapsed) = (mem::take(&mut outcome.logs), outcome.fuel, outcome.elapsed);
        Ok(outcome)
    }

    async fn run(&self, functions: Functions, call: &Call, deadline: Instant) -> Result<CallOutcome, CodecError> {
        loop {
            match self.pool.call(&self.tenant, functions.clone(), call.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(_) if Instant::now() < deadline => sleep(BUSY_PAUSE).await,
                Err(_) => return Err(CodecError::Busy),
            }
        }
    }

    /// The loaded functions, or why they cannot be loaded. A failure that may not happen again is not remembered.
    pub async fn load(&self, deadline: Instant) -> Result<Result<Functions, Failure>, CodecError> {
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
