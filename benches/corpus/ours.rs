//! Codecs in our sandboxes.

use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use runtime::{Call, Engine, Functions, Recording, Sandbox, Settings, Sources, Steps, Value};
use workbench::Plan;

use crate::{codecs::Codec, rounds::Timing};

/// Messages of each example in a run of `functions bench`.
const BENCH_COUNT: u32 = 300;

/// The standard engine, one with another guest, and one that counts steps.
pub(crate) struct Engines {
    pub(crate) usual: Arc<Engine>,
    pub(crate) unmetered: Option<Arc<Engine>>,
    pub(crate) counting: Arc<Engine>,
}

impl Engines {
    pub(crate) fn new() -> Self {
        let settings = Settings::default();
        let other = env::var_os("AIRLOCK_GUEST").map(|path| fs::read(path).unwrap());
        let engine = |guest: Vec<u8>| Arc::new(Engine::with_guest(&settings, &guest).unwrap());
        Self {
            usual: Arc::new(Engine::new(&settings).unwrap()),
            unmetered: other.map(engine),
            counting: Arc::new(Engine::profiling(&settings).unwrap()),
        }
    }

    /// The time of a message, as `functions bench` reports it.
    pub(crate) fn bench(&self, codec: &Codec) -> Timing {
        let plan = Plan { count: BENCH_COUNT, example: None, profiling: None, peer: None };
        let sources = codec.sources();
        let bench = |call: &Call| workbench::measure_message(&self.usual, &codec.id, &sources, call, plan);
        let times: Vec<_> = codec.messages.iter().map(|call| bench(call).messages[0].time).collect();
        let mean = |time: fn(&workbench::Summary) -> f64| times.iter().map(time).sum::<f64>() / times.len() as f64;
        Timing { best: mean(|time| time.min), median: mean(|time| time.median) }
    }
}

/// A function set and a sandbox that has run it before.
pub(crate) struct Ours {
    functions: Functions,
    sandbox: Sandbox,
}

impl Ours {
    /// Loads the sources; `None` if that fails.
    pub(crate) fn new(engine: &Arc<Engine>, sources: &Sources) -> Option<Self> {
        Some(Self { functions: engine.load(sources, engine.limits()).ok()?, sandbox: engine.sandbox() })
    }

    /// Runs all messages `times` times.
    pub(crate) fn run(&mut self, codec: &Codec, times: u32) {
        for _ in 0..times {
            for message in &codec.messages {
                assert!(self.sandbox.call(&self.functions, message).result.is_ok());
            }
        }
    }

    /// The fields of a message; `None` if it fails.
    pub(crate) fn json(&mut self, message: &Call) -> Option<String> {
        match self.sandbox.call(&self.functions, message).result.ok()? {
            Value::Fields { json, .. } => Some(json.get().to_owned()),
            _ => None,
        }
    }

    /// The fraction of a message's time spent inside the sandbox.
    pub(crate) fn guest_share(&mut self, codec: &Codec) -> f64 {
        const TIMES: usize = 200;
        let (mut inside, mut whole) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..TIMES {
            for message in &codec.messages {
                let (report, in_guest) = self.sandbox.call_timed(&self.functions, message);
                inside += in_guest;
                whole += report.elapsed;
            }
        }
        inside.as_secs_f64() / whole.as_secs_f64()
    }
}

/// A function set in a sandbox that counts steps, as for `functions profile`.
pub(crate) struct Counted {
    functions: Functions,
    sandbox: Sandbox,
    steps: Arc<Steps>,
}

impl Counted {
    /// Loads the sources; `None` if that fails.
    pub(crate) fn new(engine: &Arc<Engine>, sources: &Sources) -> Option<Self> {
        let functions = engine.load(sources, engine.limits()).ok()?;
        let mut sandbox = engine.sandbox();
        let steps = sandbox.steps(&functions).ok()?;
        Some(Self { functions, sandbox, steps })
    }

    /// Runs all messages `times` times, each with a recording of its own.
    pub(crate) fn run(&mut self, codec: &Codec, times: u32) {
        for _ in 0..times {
            for message in &codec.messages {
                let recording = Recording::new(&self.steps);
                assert!(self.sandbox.call_recorded(&self.functions, message, recording).0.result.is_ok());
            }
        }
    }
}
