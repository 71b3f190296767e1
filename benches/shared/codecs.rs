//! The codecs to measure: those in the directory `AIRLOCK_CORPUS`, or our own.

use std::path::PathBuf;
use std::{env, fs};

use runtime::{Call, EntryPoint, Function};
use workbench::{Codec, Example, Expected, Input};

/// Names the directory of records.
const DIR: &str = "AIRLOCK_CORPUS";
const OWN_DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/codecs");

/// All codecs of the corpus, in a fixed order.
pub(crate) fn read() -> Vec<Codec> {
    let dir = env::var_os(DIR).map_or_else(|| OWN_DIR.into(), PathBuf::from);
    let entries = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}; set {DIR} to a directory of records", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    workbench::read(&files, None).unwrap()
}

/// The uplinks of `codec` that return a value and do not depend on the time.
pub(crate) fn uplinks(codec: &Codec) -> impl Iterator<Item = Call> {
    let is_steady = |example: &&Example| {
        let gives_value = matches!(example.expected, Expected::Value(_));
        example.function == Function::Decoder && gives_value && example.excluded.is_none()
    };
    codec.examples.iter().filter(is_steady).filter_map(uplink)
}

fn uplink(example: &Example) -> Option<Call> {
    let Input::Bytes(payload) = &example.input else { return None };
    Some(Call {
        entry_point: EntryPoint::Uplink,
        port: example.port,
        time_ms: example.time_ms,
        seed: 1,
        payload: payload.clone(),
        extra: String::new(),
        single_function: None,
    })
}
