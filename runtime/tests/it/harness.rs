//! The test harness: an engine with one sandbox, and helpers to run functions in it.

use std::sync::Arc;

use airlock_runtime::{
    Call, CallOutcome, Engine, EntryPoint, Failure, FailureKind, Functions, Limits, Reset, Sandbox, Settings, Slot,
    Sources, Value,
};

/// Every way to restore memory. Linux supports all of them, except in some containers.
pub(crate) const RESETS: [Reset; 3] = [Reset::PageScan, Reset::Remap, Reset::Copy];

/// Every way to restore memory, both with a dedicated memory for each function set from its first message on, and with
/// one shared memory.
pub(crate) fn ways() -> impl Iterator<Item = (Reset, Settings)> {
    let places = || [32, 0].map(|hot_max| Settings { hot_max, hot_after: 1, ..settings() });
    RESETS.into_iter().flat_map(move |reset| places().map(|settings| (reset, settings)))
}

/// An engine and one of its sandboxes.
pub(crate) struct Harness {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sandbox: Sandbox,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::of(Engine::new(&settings()).unwrap())
    }

    pub(crate) fn with_way((reset, settings): (Reset, Settings)) -> Self {
        Self::of(Engine::with_reset(&settings, reset).unwrap())
    }

    pub(crate) fn with_limits(change: impl FnOnce(&mut Limits)) -> Self {
        let mut settings = settings();
        change(&mut settings.limits);
        Self::of(Engine::new(&settings).unwrap())
    }

    pub(crate) fn of(engine: Engine) -> Self {
        let engine = Arc::new(engine);
        Self { sandbox: engine.sandbox(), engine }
    }

    /// Loads functions; panics if that fails.
    pub(crate) fn load(&self, sources: &Sources) -> Functions {
        self.engine.load(sources, self.engine.limits()).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// Loads one source into `slot`.
    pub(crate) fn load_in(&self, slot: Slot, text: &str) -> Functions {
        self.load(&sources(slot, text))
    }

    /// Runs the function in `slot`, loaded with [`Harness::load_in`].
    pub(crate) fn run(&mut self, slot: Slot, functions: &Functions, payload: &[u8]) -> CallOutcome {
        let call = if slot == Slot::Encoder {
            call(EntryPoint::EncodeDownlink, b"{}")
        } else {
            call(EntryPoint::Uplink, payload)
        };
        self.sandbox.call(functions, &call)
    }

    /// Runs `payload` through a decoder.
    pub(crate) fn decode(&mut self, functions: &Functions, payload: &[u8]) -> CallOutcome {
        self.run(Slot::Decoder, functions, payload)
    }

    /// The failure of a function in `slot`, when loaded or run.
    pub(crate) fn fail(&mut self, slot: Slot, text: &str) -> Failure {
        match self.engine.load(&sources(slot, text), self.engine.limits()) {
            Ok(functions) => self.run(slot, &functions, b"x").result.expect_err(text),
            Err(failure) => failure,
        }
    }

    /// Asserts that a function in `slot` fails with `kind`.
    pub(crate) fn check_fails(&mut self, slot: Slot, kind: FailureKind, text: &str) {
        let failure = self.fail(slot, text);
        assert_eq!((failure.slot, failure.kind), (slot, kind), "{failure} in {text}");
    }

    /// Asserts that a decoder returns `expected`.
    pub(crate) fn check_decodes(&mut self, text: &str, payload: &[u8], expected: &str) {
        let functions = self.load_in(Slot::Decoder, text);
        assert_eq!(fields(&self.decode(&functions, payload)), expected, "{text}");
    }
}

/// Defaults, except that functions are not cached, and the time limit is so long that a busy machine does not reach it.
pub(crate) fn settings() -> Settings {
    let limits = Limits { time_ms_max: 600_000, load_time_ms_max: 600_000, ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

/// One source in `slot`.
pub(crate) fn sources(slot: Slot, text: &str) -> Sources {
    let mut sources = Sources::default();
    let source = match slot {
        Slot::Decoder => &mut sources.decoder,
        Slot::Converter => &mut sources.converter,
        Slot::Validator => &mut sources.validator,
        Slot::Encoder => &mut sources.encoder,
    };
    *source = text.to_owned();
    sources
}

pub(crate) fn call(entry_point: EntryPoint, payload: &[u8]) -> Call {
    Call {
        entry_point,
        port: 7,
        time_ms: 1_700_000_000_000,
        seed: 42,
        payload: payload.to_vec(),
        extra: String::new(),
        single_function: None,
    }
}

/// The fields of an outcome; panics if there are none.
pub(crate) fn fields(outcome: &CallOutcome) -> &str {
    match &outcome.result {
        Ok(Value::Fields { json, .. }) => json.get(),
        other => panic!("expected fields, got {other:?}"),
    }
}

/// The fields that `sources` decode from `payload`, and whether they are valid.
pub(crate) fn uplink(sources: &Sources, payload: &[u8]) -> (String, bool) {
    let mut harness = Harness::new();
    let functions = harness.load(sources);
    match harness.sandbox.call(&functions, &call(EntryPoint::Uplink, payload)).result {
        Ok(Value::Fields { json, valid, .. }) => (json.get().to_owned(), valid),
        other => panic!("expected fields, got {other:?}"),
    }
}

/// The outcome of an encoder for `fields`.
pub(crate) fn encode(text: &str, fields: &str) -> CallOutcome {
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Encoder, text);
    harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, fields.as_bytes()))
}

/// Asserts that an encoder returns `bytes` and `port` for `fields`.
pub(crate) fn check_encodes(text: &str, fields: &str, bytes: &[u8], port: Option<u8>) {
    match encode(text, fields).result {
        Ok(Value::Bytes { bytes: got, port: on }) => assert_eq!((&got[..], on), (bytes, port), "{text}"),
        other => panic!("expected bytes, got {other:?} from {text}"),
    }
}
