//! Arbitrary messages to functions that read all of their input: bytes, fields and dry runs.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use runtime::{Call, Engine, EntryPoint, FailureKind, Function, Functions, Settings, Sources};

const FUNCTIONS: [Function; 6] = [
    Function::Decoder,
    Function::Converter,
    Function::Validator,
    Function::Encoder,
    Function::DecodeDownlink,
    Function::NormalizeUplink,
];

/// Returns its input, and logs it.
const ECHO: &str = "
function decodeUplink(input) { console.log(input); return { data: input, warnings: [JSON.stringify(input)] }; }
function normalizeUplink(input) { return { data: input.data }; }
function decodeDownlink(input) { return { data: input }; }
function encodeDownlink(input) { console.log(input); return { bytes: JSON.stringify(input).split('').map(c => c.charCodeAt(0) & 255).slice(0, 242), fPort: input.fPort }; }
";

fuzz_target!(init: { fixture(); }, |input: (u8, u8, i64, u64, Vec<u8>, String)| {
    let (way, port, time_ms, seed, payload, extra) = input;
    let (engine, functions) = fixture();
    let entry_point = [EntryPoint::Uplink, EntryPoint::EncodeDownlink, EntryPoint::DecodeDownlink, EntryPoint::SingleFunction][usize::from(way % 4)];
    let function = FUNCTIONS[usize::from(way / 4) % FUNCTIONS.len()];
    let single_function = (entry_point == EntryPoint::SingleFunction).then_some(function);
    let call = Call { entry_point, port, time_ms, seed, payload, extra, single_function };
    let mut sandbox = engine.sandbox();
    let first = sandbox.call(functions, &call);
    let kind = first.result.as_ref().err().map(|failure| failure.kind);
    assert!(!matches!(kind, Some(FailureKind::Broken | FailureKind::Time)), "{first:?}");
    // Run it again after the reset: the result and the fuel must be the same.
    let second = sandbox.call(functions, &call);
    assert_eq!(format!("{:?}", first.result), format!("{:?}", second.result));
    assert_eq!((first.fuel, first.logs, first.warnings), (second.fuel, second.logs, second.warnings));
});

fn fixture() -> &'static (Arc<Engine>, Functions) {
    static FIXTURE: OnceLock<(Arc<Engine>, Functions)> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let mut settings = Settings::default();
        settings.limits.time_ms_max = 60_000;
        let engine = Arc::new(Engine::new(&settings).expect("the engine starts"));
        let functions = engine.load(&Sources::single_file(ECHO), engine.limits()).expect("good functions load");
        (engine, functions)
    })
}
