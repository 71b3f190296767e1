//! Messages of an honest application and of a hostile one.

use runtime::{Asker, Call, Engine, Entry, Functions, Report, Sources, Urgency};

pub(crate) const HONEST: &str = include_str!("../codecs/meter.js");
pub(crate) const ENDLESS: &str = "function Decoder() { while (true) {} }";
const PAYLOAD: &[u8] = include_bytes!("../codecs/meter.bin");

pub(crate) fn load(engine: &Engine, text: &str) -> Functions {
    let sources = Sources { decoder: text.to_owned(), ..Sources::default() };
    engine.load(&sources, engine.limits()).unwrap()
}

pub(crate) fn asker(tenant: &str) -> Asker {
    Asker { tenant: tenant.into(), urgency: Urgency::Live }
}

pub(crate) fn call() -> Call {
    Call { entry: Entry::Uplink, port: 1, time_ms: 1, seed: 0, payload: PAYLOAD.to_vec(), trial: None }
}

pub(crate) fn check(report: &Report) {
    assert!(report.result.is_ok(), "{report:?}");
}
