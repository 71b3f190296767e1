//! The codecs that are measured: records of a corpus, one JSON object per line.

use std::path::{Path, PathBuf};
use std::{env, fs};

use runtime::{Call, Dialect, Entry, Sources};
use serde::Deserialize;

/// The folder of records, where it is not our own.
const FOLDER: &str = "AIRLOCK_CORPUS";
const OWN_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/codecs");
/// The most examples of one codec, so that none weighs more than others in the time of a run.
const EXAMPLES_MAX: usize = 8;

/// A codec with messages for it.
pub(crate) struct Codec {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) dialect: Dialect,
    /// Whether the text reads the globals `payload` and `port`.
    pub(crate) reads_globals: bool,
    pub(crate) examples: Vec<Example>,
}

/// One uplink.
#[derive(Clone)]
pub(crate) struct Example {
    pub(crate) port: u8,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Record {
    id: String,
    style: Option<String>,
    script: Option<String>,
    /// Beside the records, where the script is not in the record.
    script_file: Option<PathBuf>,
    #[serde(default)]
    v2_globals: bool,
    examples: Vec<ExampleRecord>,
}

#[derive(Deserialize)]
struct ExampleRecord {
    /// An uplink when it is left out.
    kind: Option<String>,
    port: Option<u8>,
    bytes_hex: Option<String>,
    outcome: Option<String>,
    #[serde(default)]
    env: Vec<String>,
}

impl Codec {
    /// The name of the function that decodes.
    pub(crate) fn entry(&self) -> &'static str {
        match self.dialect {
            Dialect::V2 => "Decoder",
            Dialect::Ts013 => "decodeUplink",
            Dialect::ChirpStack3 => "Decode",
        }
    }

    /// The codec as the decoder of an application.
    pub(crate) fn sources(&self) -> Sources {
        Sources { decoder: self.text.clone(), dialect: Some(self.dialect), ..Sources::default() }
    }

    /// The same with a converter that adds a field and a validator that looks at it.
    pub(crate) fn three_sources(&self) -> Sources {
        Sources {
            converter: "function Converter(decoded, port) { decoded.converted_port = port; return decoded; }".into(),
            validator: "function Validator(converted, port) { return converted.converted_port === port; }".into(),
            ..self.sources()
        }
    }
}

impl Example {
    pub(crate) fn call(&self) -> Call {
        Call {
            entry: Entry::Uplink,
            port: self.port,
            time_ms: 1_763_700_000_000,
            seed: 1,
            payload: self.bytes.clone(),
            trial: None,
        }
    }
}

impl Record {
    fn codec(self, folder: &Path) -> Option<Codec> {
        let text = self.script.or_else(|| fs::read_to_string(folder.join(self.script_file?)).ok())?;
        let dialect = match self.style.as_deref()? {
            "v2" => Dialect::V2,
            "ts013" => Dialect::Ts013,
            "chirpstack3" => Dialect::ChirpStack3,
            _ => return None,
        };
        let examples: Vec<Example> =
            self.examples.into_iter().filter_map(ExampleRecord::example).take(EXAMPLES_MAX).collect();
        let codec = Codec { id: self.id, text, dialect, reads_globals: self.v2_globals, examples };
        (!codec.examples.is_empty()).then_some(codec)
    }
}

impl ExampleRecord {
    /// An uplink that gives a value, the same at any time.
    fn example(self) -> Option<Example> {
        let fits = self.kind.is_none_or(|kind| kind == "uplink")
            && self.outcome.is_none()
            && !self.env.iter().any(|needed| needed == "now" || needed == "random");
        let bytes = hex::decode(self.bytes_hex?).ok()?;
        fits.then_some(Example { port: self.port?, bytes })
    }
}

/// All codecs of the corpus in a steady order.
pub(crate) fn read() -> Vec<Codec> {
    let folder = env::var_os(FOLDER).map_or_else(|| OWN_FOLDER.into(), PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| {
            panic!("failed to read {}: {error}; set {FOLDER} to a folder of records", folder.display())
        })
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_file(file)).collect()
}

fn read_file(file: &Path) -> Vec<Codec> {
    let text = fs::read_to_string(file).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap());
    records.filter_map(|record| record.codec(file.parent().unwrap_or(file))).collect()
}
