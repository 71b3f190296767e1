//! Codecs in our sandboxes.

use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use runtime::{Call, Engine, Functions, Sandbox, Settings, Sources, Value};

use crate::codecs::Codec;

/// The standard engine, and one with another guest.
pub(crate) struct Engines {
    pub(crate) usual: Arc<Engine>,
    pub(crate) unmetered: Option<Arc<Engine>>,
}

impl Engines {
    pub(crate) fn new() -> Self {
        let settings = Settings::default();
        let other = env::var_os("AIRLOCK_GUEST").map(|path| fs::read(path).unwrap());
        let engine = |guest: Vec<u8>| Arc::new(Engine::with_guest(&settings, &guest).unwrap());
        Self { usual: Arc::new(Engine::new(&settings).unwrap()), unmetered: other.map(engine) }
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
