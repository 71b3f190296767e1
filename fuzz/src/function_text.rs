//! Arbitrary text as a decoder: it is refused, fails or runs, and other applications' messages stay correct.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use runtime::{Call, Engine, EntryPoint, FailureKind, Functions, Limits, Sandbox, Settings, Sources, Value};

/// The fuel of an input: little, so that about a hundred inputs run per second.
const FUEL: u64 = 5_000_000;

struct Fixture {
    engine: Arc<Engine>,
    innocent: Functions,
}

fuzz_target!(init: { fixture(); }, |text: &[u8]| {
    let Fixture { engine, innocent } = fixture();
    let mut sandbox = engine.sandbox();
    let decoder = String::from_utf8_lossy(text).into_owned();
    match engine.load(&Sources { decoder, ..Sources::default() }, engine.limits()) {
        Ok(functions) => {
            for payload in [&b""[..], &[1, 2, 3]] {
                let report = sandbox.call(&functions, &call(payload));
                assert!(report.fuel <= FUEL);
                check(report.result.err().map(|failure| failure.kind));
            }
        }
        Err(failure) => check(Some(failure.kind)),
    }
    check_innocent(&mut sandbox, innocent);
});

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let limits = Limits { fuel: FUEL, load_fuel: 4 * FUEL, time_ms_max: 60_000, ..Limits::default() };
        let engine = Engine::new(&Settings { limits, ..Settings::default() }).expect("the engine starts");
        let decoder = "function Decoder(bytes) { return { n: bytes[0] }; }".to_owned();
        let sources = Sources { decoder, ..Sources::default() };
        let innocent = engine.load(&sources, engine.limits()).expect("good functions load");
        Fixture { engine: Arc::new(engine), innocent }
    })
}

fn call(payload: &[u8]) -> Call {
    Call {
        entry_point: EntryPoint::Uplink,
        port: 1,
        time_ms: 0,
        seed: 0,
        payload: payload.to_vec(),
        extra: String::new(),
        single_function: None,
    }
}

/// A broken sandbox or one that only the clock ended is a find.
fn check(kind: Option<FailureKind>) {
    assert!(!matches!(kind, Some(FailureKind::Broken | FailureKind::Time)), "{kind:?}");
}

fn check_innocent(sandbox: &mut Sandbox, innocent: &Functions) {
    match sandbox.call(innocent, &call(&[7])).result {
        Ok(Value::Fields { json, .. }) => assert_eq!(json.get(), r#"{"n":7}"#),
        other => panic!("{other:?}"),
    }
}
