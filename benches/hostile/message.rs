//! Messages of an honest application and of a hostile one.

use runtime::{Call, CallOutcome, Engine, EntryPoint, Functions, Priority, Sources, Tenant};

pub(crate) const HONEST: &str = include_str!("../codecs/meter.js");
pub(crate) const ENDLESS: &str = "function Decoder() { while (true) {} }";
const PAYLOAD: &[u8] = include_bytes!("../codecs/meter.bin");

pub(crate) fn load(engine: &Engine, text: &str) -> Functions {
    let sources = Sources { decoder: text.to_owned(), ..Sources::default() };
    engine.load(&sources, engine.limits()).unwrap()
}

pub(crate) fn tenant(id: &str) -> Tenant {
    Tenant::alone(id, Priority::Live)
}

pub(crate) fn call() -> Call {
    Call {
        entry_point: EntryPoint::Uplink,
        port: 1,
        time_ms: 1,
        seed: 0,
        payload: PAYLOAD.to_vec(),
        extra: String::new(),
        single_function: None,
    }
}

pub(crate) fn check(report: &CallOutcome) {
    assert!(report.result.is_ok(), "{report:?}");
}
