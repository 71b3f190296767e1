//! Codecs with messages, and their results in the server's sandbox, as JSON.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use runtime::{
    Call, CallOutcome, Dialect, Engine, EntryPoint, Failure, Function, LogLevel, Recording, Settings, Slot, Sources,
    Value,
};
use serde_json::{Value as Json, json};
use workbench::{Codec, Example, Input};

/// Codecs of our own: those of this repository, and those of the corpus that `AIRLOCK_CORPUS` names.
const CODECS: [&str; 2] = ["tests/fixtures/codecs", "workbench/tests/fixtures"];
const CORPUS: &str = "AIRLOCK_CORPUS";
/// Calls of each codec whose lines are compared: counting every step takes long.
const PROFILED: usize = 2;

/// Functions that a limit ends, that fail, or whose output limits cut off.
const FAULTS: [&str; 24] = [
    "function Decoder() { while (true) {} }",
    "function Decoder() { function f(n) { return f(n + 1) + 1; } return f(0); }",
    "function Decoder() { return /(a*)*b/.test('a'.repeat(30)); }",
    "function Decoder() { return /(?:a|b|(?:c|d))*x/.test('ab'.repeat(100000)); }",
    "function Decoder() { return [1, 2].sort(function c() { return [2, 1].sort(c)[0]; }); }",
    "function Decoder() { var a = []; while (true) a.push(new ArrayBuffer(65536)); }",
    "function Decoder() { var a = []; while (true) a.push(new Array(1000).fill(7)); }",
    "function Decoder() { var a = []; try { while (true) a.push(new Uint8Array(1 << 20)); } catch (e) { throw null; } }",
    "function Decoder() { var a = 'x'; while (true) a = a + a; }",
    "function Decoder() {\n  throw new Error('no');\n}",
    "function Decoder() { throw { toString: 1 }; }",
    "function Decoder() { var a = {}; a.a = a; return a; }",
    "function Decoder() { return { a: 'x'.repeat(20000) }; }",
    "function Decoder() { for (var i = 0; i < 100; i++) console.log(i, 'x'.repeat(2000)); return {}; }",
    "function Decoder() { console.warn('before'); while (true) console.log('on'); }",
    "function Decoder() { return { a: '\\ud800', nan: NaN, minus: -0, big: 1e300, date: new Date(), random: Math.random() }; }",
    "function decodeUplink() { return { data: {}, errors: ['bad', 7] }; }",
    "function decodeUplink() { return { data: { a: 1 }, warnings: Array(100).fill('w'.repeat(2000)) }; }",
    "async function Decoder() { return {}; }",
    "function Decoder() { return 7 }\nfunction Encoder() { return [300]; }",
    "function Decoder() {\n  thro new Error('no');\n}",
    "import fs from 'fs';\nexport function decodeUplink() { return { data: {} }; }",
    "var kept = []; for (var i = 0; i < 100; i++) kept.push(new Uint8Array(100000).fill(1)); function Decoder() { return {}; }",
    "var nothing = 1;",
];

/// The limits, and codecs with their calls.
pub(super) struct Vectors {
    engine: Engine,
    all: Vec<(Sources, Vec<Call>)>,
}

impl Vectors {
    pub(super) fn new() -> Self {
        let (engine, codecs) = codecs();
        let mut all: Vec<_> = codecs.iter().map(of_codec).collect();
        all.extend(FAULTS.map(of_fault));
        all.push(of_four());
        Self { engine: Arc::into_inner(engine).unwrap(), all }
    }

    pub(super) fn calls(&self) -> usize {
        self.all.iter().map(|(_, calls)| calls.len()).sum()
    }

    /// Returns the input of the page's sandbox.
    pub(super) fn to_json(&self) -> Json {
        let vectors = self.all.iter().map(|(sources, calls)| {
            let calls: Vec<Json> = calls.iter().map(describe_call).collect();
            let profiled = &calls[..calls.len().min(PROFILED)];
            json!({"sources": describe_sources(sources), "profiled": profiled, "calls": calls})
        });
        json!({"limits": **self.engine.limits(), "vectors": vectors.collect::<Vec<_>>()})
    }

    /// Returns the results of the server's sandbox.
    pub(super) fn outcomes(&self) -> Vec<Json> {
        let mut sandbox = self.engine.sandbox();
        let mut outcome =
            |(sources, calls): &(Sources, Vec<Call>)| match self.engine.load(sources, self.engine.limits()) {
                Ok(functions) => json!({
                    "dialects": Slot::ALL.map(|slot| functions.dialect(slot).map(Dialect::name)),
                    "fuel": functions.load_fuel(),
                    "calls": calls.iter().map(|call| describe(&sandbox.call(&functions, call))).collect::<Vec<_>>(),
                }),
                Err(failure) => json!({"failure": describe_failure(&failure), "calls": []}),
            };
        self.all.iter().map(&mut outcome).collect()
    }

    /// Returns what each line costs in the server's sandbox, for the first calls of each codec.
    pub(super) fn profiles(&self) -> Vec<Json> {
        let engine = Engine::profiling(&settings()).unwrap();
        let mut sandbox = engine.sandbox();
        let mut profile = |(sources, calls): &(Sources, Vec<Call>)| {
            let Ok(functions) = engine.load(sources, engine.limits()) else { return json!([]) };
            let steps = sandbox.steps(&functions).unwrap();
            let record = |call| sandbox.call_recorded(&functions, call, Recording::new(&steps)).1.unwrap();
            calls.iter().take(PROFILED).map(record).map(|recording| describe_profile(&recording)).collect()
        };
        self.all.iter().map(&mut profile).collect()
    }
}

fn describe_profile(recording: &Recording) -> Json {
    let mut lines: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (step, cost) in recording.steps.all().iter().zip(&recording.costs) {
        let (fuel, runs) = lines.entry(step.line).or_default();
        *fuel += cost.fuel;
        *runs = (*runs).max(cost.runs);
    }
    let ran = lines.into_iter().filter(|(_, (_, runs))| *runs > 0);
    let lines: Vec<Json> = ran.map(|(line, (fuel, runs))| json!({"line": line, "fuel": fuel, "runs": runs})).collect();
    json!({"fuel": recording.fuel(), "outside": recording.outside, "lines": lines})
}

/// The codecs that are compared, and the engine that has read them.
pub(super) fn codecs() -> (Arc<Engine>, Vec<Codec>) {
    let engine = Arc::new(Engine::new(&settings()).unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = CODECS.iter().map(|path| root.join(path)).collect();
    paths.extend(std::env::var_os(CORPUS).map(Into::into));
    let found = workbench::find(&paths, None, &engine);
    (engine, found.codecs)
}

/// Functions that end by fuel, never by a busy machine's clock.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.limits.time_ms_max = 60_000;
    settings.limits.load_time_ms_max = 60_000;
    settings
}

fn of_codec(codec: &Codec) -> (Sources, Vec<Call>) {
    let sources = Sources { dialect: codec.dialect, ..Sources::single_file(&codec.script) };
    let alone = codec.examples.iter().map(call_alone);
    let whole = codec.examples.iter().filter(|example| example.function == Function::Decoder).map(|example| Call {
        entry_point: EntryPoint::Uplink,
        single_function: None,
        ..call_alone(example)
    });
    (sources, alone.chain(whole).collect())
}

fn call_alone(example: &Example) -> Call {
    let payload = match &example.input {
        Input::Bytes(bytes) => bytes.clone(),
        Input::Json(value) => value.to_string().into_bytes(),
    };
    Call {
        entry_point: EntryPoint::SingleFunction,
        port: example.port,
        time_ms: example.time_ms,
        seed: 1,
        payload,
        extra: Json::Object(example.extra.clone()).to_string(),
        single_function: Some(example.function),
    }
}

fn uplink(payload: &[u8]) -> Call {
    Call {
        entry_point: EntryPoint::Uplink,
        port: 2,
        time_ms: -1,
        seed: u64::MAX,
        payload: payload.to_vec(),
        extra: String::new(),
        single_function: None,
    }
}

/// Twice, because the second message must meet nothing of the first; too long a payload, and an encoder that may be missing.
fn of_fault(text: &str) -> (Sources, Vec<Call>) {
    let downlink = Call { entry_point: EntryPoint::EncodeDownlink, ..uplink(br#"{"led": true}"#) };
    let back = Call { entry_point: EntryPoint::DecodeDownlink, ..uplink(&[7]) };
    let deep = Call { payload: format!("{}1{}", "[".repeat(99), "]".repeat(99)).into_bytes(), ..downlink.clone() };
    let calls = vec![uplink(&[1, 2]), uplink(&[1, 2]), uplink(&[0; 256]), downlink, back, deep];
    (Sources::single_file(text), calls)
}

/// Four sources, of which one is pasted twice.
fn of_four() -> (Sources, Vec<Call>) {
    let both =
        "function Decoder(bytes) { return { n: bytes[0] }; }\nfunction Encoder(fields) { return [fields.n, 1]; }";
    let sources = Sources {
        decoder: both.to_owned(),
        converter: "function Converter(fields) { fields.n *= 2; return fields; }".to_owned(),
        validator: "function Validator(fields) { return fields.n < 100; }".to_owned(),
        encoder: both.to_owned(),
        dialect: Some(Dialect::V2),
        is_single_file: false,
    };
    let downlink = Call { entry_point: EntryPoint::EncodeDownlink, ..uplink(br#"{"n": 3}"#) };
    (sources, vec![uplink(&[4]), uplink(&[90]), uplink(&[]), downlink])
}

fn describe_sources(sources: &Sources) -> Json {
    let dialect = sources.dialect.map(Dialect::name);
    match sources.is_single_file {
        true => json!({"text": sources.decoder, "dialect": dialect}),
        false => {
            let mut described = json!({"dialect": dialect});
            Slot::ALL.into_iter().for_each(|slot| described[slot.name()] = json!(sources.text(slot)));
            described
        }
    }
}

fn describe_call(call: &Call) -> Json {
    let function = call.single_function.map(|function| match function {
        Function::Decoder => "uplink",
        Function::Converter => "convert",
        Function::Validator => "validate",
        Function::Encoder => "downlink-encode",
        Function::DecodeDownlink => "downlink-decode",
        Function::NormalizeUplink => "uplink-normalize",
    });
    let entry_point = match call.entry_point {
        EntryPoint::Uplink => "uplink",
        EntryPoint::EncodeDownlink => "encodeDownlink",
        EntryPoint::DecodeDownlink => "decodeDownlink",
        EntryPoint::SingleFunction => "singleFunction",
    };
    json!({
        "entryPoint": entry_point,
        "singleFunction": function,
        "port": call.port,
        "timeMs": call.time_ms,
        // JavaScript's own numbers hold no 64 bits.
        "seed": call.seed.to_string(),
        "payload": hex::encode(&call.payload),
        "extra": call.extra,
    })
}

fn describe(outcome: &CallOutcome) -> Json {
    let logs = outcome.logs.iter().map(|entry| {
        let level = match entry.level {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        };
        json!({"slot": entry.slot.name(), "level": level, "fields": entry.fields})
    });
    json!({
        "result": outcome.result.as_ref().map_or_else(describe_failure, describe_value),
        "warnings": outcome.warnings,
        "logs": logs.collect::<Vec<_>>(),
        "fuel": outcome.fuel,
    })
}

fn describe_value(value: &Value) -> Json {
    match value {
        Value::Fields { json, normalized, valid } => {
            json!({"json": json.get(), "normalized": normalized.as_ref().map(|json| json.get()), "valid": valid})
        }
        Value::Bytes { bytes, port } => json!({"bytes": hex::encode(bytes), "port": port}),
        Value::Returned { json } => json!({"json": json.as_ref().map(|json| json.get())}),
    }
}

fn describe_failure(failure: &Failure) -> Json {
    let Failure { slot, kind, line, column, .. } = failure;
    json!({"kind": kind.name(), "slot": slot.name(), "line": line, "column": column, "text": failure.to_string()})
}
