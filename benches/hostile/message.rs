//! Messages of an honest application and of a hostile one.

use runtime::{Asker, Call, Engine, Entry, Functions, Report, Sources, Urgency};

pub(crate) const HONEST: &str = include_str!("../codecs/meter.js");
pub(crate) const ENDLESS: &str = "function Decoder() { while (true) {} }";
const PAYLOAD: &[u8] =
    b"\x01\x00\x09\x08\x01\x01\x08\xfa\x01\x02\x09\x01\x01\x03\x00\x00\x10\x72\x01\x04\x00\x00\x0f\x8c\x01\x05\x00\
    \x00\x11\x35\x01\x06\x00\x00\x26\x03\x01\x07\x00\x00\x23\xa0\x01\x08\xff\xff\xff\x90\x01\x15\x13\x89\x02\x00\
    \x00\x12\xd6\x87\x2f";

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
