//! The codecs of the applications, each with one message.

use std::path::PathBuf;
use std::{env, fs};

use airlock::check::{self, Input};
use runtime::{Call, Entry, Function, Sources};

const OWN_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/codecs");

/// A decoder and a message for it.
pub(crate) struct Codec {
    pub(crate) script: String,
    pub(crate) call: Call,
}

impl Codec {
    /// The codec as the decoder of application number `number`.
    pub(crate) fn sources(&self, number: usize) -> Sources {
        Sources { decoder: self.text(number), ..Sources::default() }
    }

    /// Its text, which no other application has.
    pub(crate) fn text(&self, number: usize) -> String {
        format!("{}\nvar applicationNumber = {number};", self.script)
    }
}

/// The codecs that decode an uplink.
pub(crate) fn read() -> Vec<Codec> {
    let folder = env::var_os("AIRLOCK_CORPUS").map_or_else(|| OWN_FOLDER.into(), PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    check::read(&files, None).unwrap().into_iter().filter_map(codec).collect()
}

fn codec(codec: check::Codec) -> Option<Codec> {
    let usable = |example: &&check::Example| example.excluded.is_none() && example.function == Function::Decoder;
    let example = codec.examples.iter().filter(usable).find(|example| {
        matches!(example.expected, check::Expected::Value(_)) && matches!(example.input, Input::Bytes(_))
    })?;
    let Input::Bytes(payload) = &example.input else { return None };
    let call = Call {
        entry: Entry::Uplink,
        port: example.port,
        time_ms: example.time_ms,
        seed: 1,
        payload: payload.clone(),
        trial: None,
    };
    Some(Codec { script: codec.script, call })
}
