//! The arguments of `airlock functions …`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use client::HexBytes;
use types::Timestamp;

use super::serve::Serve;
use crate::{dialect::DialectName, json_object::JsonObject};

#[derive(Debug, Subcommand)]
pub(crate) enum Functions {
    /// Check codecs against examples of what they return
    ///
    /// Each line of a file is a JSON object: a codec and its examples.
    ///
    ///   {"id": "vendor/model", "script_file": "model.js", "examples": [
    ///     {"port": 2, "bytes_hex": "0110", "expected": {"data": {"on": true}}}]}
    ///
    /// `script` contains the source, or `script_file` names a file in the same directory or below.
    /// `style` is ts013, v2 or chirpstack3; without it, the source decides.
    ///
    /// The `kind` of an example is uplink (the default), convert, validate, downlink-encode,
    /// downlink-decode or uplink-normalize. Uplink and downlink-decode take `bytes_hex`, the others
    /// take `input_obj`. `expected` is the whole return value; instead of it, `outcome` may be
    /// undefined, throws or timeout. With neither, the result is shown. For further members, see
    /// docs/functions.md.
    ///
    /// The exit code is 0 if all results are as expected, 1 if some are not, and 2 if a file is not
    /// valid, in which case nothing is run.
    #[command(verbatim_doc_comment)]
    Check(Check),
    /// Run functions on one message and show the result
    ///
    /// Decodes, converts and validates a payload, or encodes fields, in the same way as for a live message.
    Run(Run),
    /// Measure what a message costs: time, fuel and memory
    Bench(Bench),
    /// Run the codecs of a directory over HTTP: `POST /codecs/NAME`
    ///
    /// For Node-RED, EMQX and other programs. A request has a payload, port, time, variables and dialect; the response
    /// has fields, warnings, logs, fuel and microseconds. See docs/codecs.md.
    Serve(Serve),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Check {
    /// Files with one codec per line; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Check only codecs whose id contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) id: Option<String>,
    /// Show only failures and totals
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show every example with its result and logs
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print JSON: an object per codec, then the totals
    #[arg(long, conflicts_with_all = ["quiet", "verbose"])]
    pub(crate) json: bool,
    /// Codecs to check in parallel; use 1 for accurate times [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
}

/// The arguments of `run`, which `bench` takes too.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("message").args(["hex", "fields"]).required(true))]
pub(crate) struct Run {
    /// File with the decoder, or with --fields the encoder; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Payload to decode, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub(crate) hex: Option<HexBytes>,
    /// JSON object to encode, instead of a payload to decode
    #[arg(long, value_name = "JSON", conflicts_with_all = ["hex", "converter", "validator"])]
    pub(crate) fields: Option<JsonObject>,
    /// Port that the functions see
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) port: u8,
    /// File with a converter; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) converter: Option<PathBuf>,
    /// File with a validator; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) validator: Option<PathBuf>,
    /// Dialect [default: detected from the source]
    #[arg(long, alias = "style", value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectName>,
    /// Current time that the functions see, as in 2026-01-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Timestamp>,
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "a time has a date, a time and a zone, as in 2026-01-01T00:00:00Z".to_owned())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Messages to run, each in a fresh sandbox
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
}
