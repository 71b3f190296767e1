//! `airlock functions …`: the arguments.

use std::{path::PathBuf, str::FromStr};

use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use client::Payload;
use serde_json::{Map, Value};
use types::Timestamp;

use crate::dialect::Style;

/// `airlock functions …`.
#[derive(Debug, Subcommand)]
pub enum Functions {
    /// Check codecs against examples of what they must answer
    ///
    /// Every line of a file is a JSON object: a codec and its examples.
    ///
    ///   {"id": "vendor/model", "script_file": "model.js", "examples": [
    ///     {"port": 2, "bytes_hex": "0110", "expected": {"data": {"on": true}}}]}
    ///
    /// `script` holds the text itself, `script_file` names a file in the folder of this one.
    /// `style` is ts013, v2 or chirpstack3; without it the text decides.
    ///
    /// `kind` of an example is uplink (the default), convert, validate, downlink-encode,
    /// downlink-decode or uplink-normalize. Uplink and downlink-decode take `bytes_hex`,
    /// the others `input_obj`. `expected` is the whole return value; in its place, `outcome`
    /// may be undefined, throws or timeout. With neither, what comes out is shown.
    /// docs/functions.md tells the rest.
    ///
    /// The exit code is 0 when everything came out as expected, 1 when something did not,
    /// and 2 when a file is not valid; then nothing was run.
    #[command(verbatim_doc_comment)]
    Check(Check),
    /// Run functions on one message and show what comes out
    ///
    /// A payload is decoded, converted and validated, or fields are encoded, as for a live message.
    Run(Run),
    /// Measure what a message costs: time, fuel, memory
    Bench(Bench),
}

/// `airlock functions check`.
#[derive(Debug, ClapArgs)]
pub struct Check {
    /// Files of one codec per line; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Check only codecs with this text in their id
    #[arg(long, value_name = "TEXT")]
    pub id: Option<String>,
    /// Show only what failed, and the totals
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show every example, with its result and logs
    #[arg(long, short)]
    pub verbose: bool,
    /// Print JSON: an object per codec, then the totals
    #[arg(long, conflicts_with_all = ["quiet", "verbose"])]
    pub json: bool,
    /// Codecs to check at once; 1 measures time best [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

/// What `airlock functions run` and `bench` run: the same path that a live message takes.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("message").args(["hex", "fields"]).required(true))]
pub struct Run {
    /// File with the decoder, or with --fields the encoder; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Payload to decode, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub hex: Option<Payload>,
    /// JSON object to encode, in place of a payload to decode
    #[arg(long, value_name = "JSON", conflicts_with_all = ["hex", "converter", "validator"])]
    pub fields: Option<Fields>,
    /// Port that the functions see
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub port: u8,
    /// File with a converter; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub converter: Option<PathBuf>,
    /// File with a validator; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub validator: Option<PathBuf>,
    /// Calling convention [default: the one whose function the text defines]
    #[arg(long, value_name = "STYLE")]
    pub style: Option<Style>,
    /// What the functions see as the current time, as in 2026-01-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub time: Option<Timestamp>,
}

/// A JSON object, as it was typed.
#[derive(Clone, Debug)]
pub struct Fields(pub String);

impl FromStr for Fields {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("fields are a JSON object, as in '{{\"led\": true}}': {error}")),
        }
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "times are a date and a time with a zone, as in 2026-01-01T00:00:00Z".to_owned())
}

/// `airlock functions bench`.
#[derive(Debug, ClapArgs)]
pub struct Bench {
    /// What to run.
    #[command(flatten)]
    pub run: Run,
    /// Messages to run, each in a fresh sandbox
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub count: u32,
}
