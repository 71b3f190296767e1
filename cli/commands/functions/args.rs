//! The arguments of `airlock functions …`.

pub(super) mod message;
pub(in crate::commands) mod values;

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Subcommand, ValueEnum};
use client::HexBytes;
use types::Timestamp;
use workbench::{BaselineName, BenchFormat, CodecName, Format, Threshold};

use self::values::{base64, percent, time};
use super::{fuzz::Fuzz, lint::Lint, port::Port, serve::Serve};
use crate::values::{dialect::DialectName, json_object::JsonObject};

#[derive(Debug, Subcommand)]
pub(crate) enum Functions {
    /// Test codecs against examples of what they return
    ///
    /// A PATH is a file, a directory with all below it, or `-`. These are found:
    ///
    ///   NAME.test.yaml beside NAME.js          our own layout
    ///   *-codec.yaml with `examples`           device repository of The Things Network
    ///   test_decode_NAME.json, test_encode_…   device profiles of ChirpStack
    ///   examples.json, NAME.examples.json      packages of TS013, and of Actility
    ///   NAME-codec.json                        codecs of Milesight
    ///   *.jsonl                                a line for each codec and its examples
    ///
    /// The exit code is 0 if all results are as expected, 1 if some are not, and 2 if a file or line
    /// is not valid or nothing was found; the others are run nevertheless. See docs/functions.md.
    #[command(
        verbatim_doc_comment,
        visible_alias = "check",
        after_help = "Examples:\n  airlock functions test .\n  airlock functions test . --filter acme/meter\n  airlock functions test codecs --coverage=85\n  airlock functions test . --quiet --report junit=codecs.xml --report html=codecs.html"
    )]
    Test(Test),
    /// Test codecs again whenever their script or their examples are saved
    ///
    /// Reads what `functions test` reads, and runs only the codecs whose files have changed. Ctrl-C ends it.
    #[command(after_help = "Examples:\n  airlock functions watch .\n  airlock functions watch vendor/acme/meter.js")]
    Watch(Watch),
    /// Write a new codec with comments, examples that pass, and a file for CI
    ///
    /// Writes NAME.js, NAME.test.yaml, and .github/workflows/codecs.yml if there is none. Nothing is overwritten.
    #[command(
        after_help = "Examples:\n  airlock functions new ts013 door-sensor\n  airlock functions new v2 meter --dir vendor/acme"
    )]
    New(New),
    /// Run functions on one message and show the result
    ///
    /// Decodes, converts and validates a payload, or encodes fields, in the same way as for a live message.
    #[command(
        after_help = "Examples:\n  airlock functions run decoder.js --hex 095C --port 2\n  airlock functions run decoder.js --base64 CVw= --json\n  airlock functions run encoder.js --fields '{\"led\": true}'\n  airlock functions run decoder.js --message uplink.json"
    )]
    Run(Run),
    /// Measure what messages cost: time, fuel and memory
    ///
    /// Measures the examples of codecs, which are found as by `functions test`, or one message. Fuel is exact; times have
    /// a 95% interval for the median. With --baseline, both are compared with an earlier run.
    #[command(
        after_help = "Examples:\n  airlock functions bench decoder.js --hex 095C\n  airlock functions bench vendor/acme --save-baseline main\n  airlock functions bench vendor/acme --baseline main --fail-above 1% --format markdown\n  airlock functions bench decoder.js --format html > bench.html\n  airlock functions bench decoder.js --example 1 --peer node"
    )]
    Bench(Bench),
    /// Report on which networks codecs run, and which lines keep them from running on the others
    ///
    /// Judges the text, and runs the examples by the rules of each network: its dialect, strict or not, without the
    /// built-ins that it lacks. The targets are chirpstack-4.16 (ChirpStack 4 up to 4.16), chirpstack-4.17 (and later),
    /// things-stack-3.34 (up to that), things-stack (later), ttn-v2, chirpstack-3, datacake and actility. A codec without
    /// examples is judged by its text.
    ///
    /// With --target, the exit code is 1 if a codec does not run on each target that is named. Without, all targets are
    /// reported, and the exit code is 0. It is 2 if a file or line is not valid or nothing was found. See
    /// docs/functions.md.
    #[command(
        after_help = "Examples:\n  airlock functions lint vendor/acme\n  airlock functions lint . --target chirpstack-4.17 --target things-stack\n  airlock functions lint . --format markdown >> \"$GITHUB_STEP_SUMMARY\""
    )]
    Lint(Lint),
    /// Port a codec to another network, and verify the result with its examples
    ///
    /// Mends what can be mended, such as undeclared variables and exports, and adds the functions that the network calls.
    /// Then runs every example on the original and, by the network's rules, on the new text. If one differs, or a line
    /// still keeps it from running there, nothing is written and the exit code is 1. Line numbers are those of the file,
    /// or of the new text for what remains. Newer syntax is not rewritten for an older engine.
    #[command(
        after_help = "Examples:\n  airlock functions port --to chirpstack-4.17 decoder.js --output decoder.mjs\n  airlock functions port --to things-stack decoder.js > things-stack.js"
    )]
    Port(Port),
    /// Show what each line of a function costs, in fuel
    ///
    /// Runs one message and prints the source with the fuel and the number of runs of each line, then the functions. The
    /// sum is what a live message is charged. What a built-in function uses counts for the line that calls it.
    #[command(
        after_help = "Examples:\n  airlock functions profile decoder.js --hex 095C\n  airlock functions profile decoder.js --hex 095C --svg flame.svg --speedscope decoder.json"
    )]
    Profile(Profile),
    /// Run random payloads through functions, and show what goes wrong
    ///
    /// Changes the payloads of examples, which are found as by `functions test`, and makes up others. Shows exceptions,
    /// endless loops, results that are no object or have `NaN`, and messages that change when they are encoded and decoded
    /// again, each with the smallest payload; and bytes that make no difference.
    ///
    /// The exit code is 0 if nothing is wrong, 1 if something is, and 2 if a file cannot be read or written, or nothing was
    /// found to run. Bytes that make no difference are no failure. See docs/functions.md.
    #[command(
        after_help = "Examples:\n  airlock functions fuzz decoder.js --ports 1,2,85\n  airlock functions fuzz vendor/acme --count 100000 --seed 7\n  airlock functions fuzz decoder.js --save"
    )]
    Fuzz(Fuzz),
    /// Run the codecs of a directory over HTTP: `POST /codecs/NAME`
    ///
    /// For Node-RED, EMQX and other programs. A request has a payload, port, time, variables and dialect; the response
    /// has fields, warnings, logs, fuel and microseconds. See docs/codecs.md.
    #[command(
        after_help = "Examples:\n  airlock functions serve codecs\n  airlock functions serve codecs --listen 0.0.0.0:8090 --key-file codecs.key"
    )]
    Serve(Serve),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Test {
    /// Files and directories with codecs and their examples; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Test only codecs whose id contains this text, as in vendor/model
    #[arg(long, visible_alias = "id", value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Compare the order of members and the last digit of numbers, too, as ChirpStack's own tests do
    #[arg(long)]
    pub(crate) exact: bool,
    /// Report all differences and whole values, instead of the first eight
    #[arg(long)]
    pub(crate) all: bool,
    /// Also list the lines and branches that no example reaches; with MIN, end with exit code 1 if the examples reach less
    /// than that percentage of all lines, or of all branches
    #[arg(long, value_name = "MIN", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = percent)]
    pub(crate) coverage: Option<f64>,
    /// Write the results into the files, in place of those that they expect
    #[arg(long)]
    pub(crate) update: bool,
    /// Show only failures and totals
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show every example with its result and logs
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Format of the output: human, json, junit, sarif, github, tap, html or markdown
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = format)]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with_all = ["quiet", "verbose", "format"])]
    pub(crate) json: bool,
    /// Also write a report to a file, as in junit=report.xml; `-` prints it instead of the usual one; can be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = report)]
    pub(crate) report: Vec<ReportFile>,
    /// Codecs to test in parallel; use 1 for accurate times [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Watch {
    /// Files and directories with codecs and their examples
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Test only codecs whose id contains this text, as in vendor/model
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Compare the order of members and the last digit of numbers, too, as ChirpStack's own tests do
    #[arg(long)]
    pub(crate) exact: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct New {
    /// The dialect in which networks call the functions
    #[arg(value_name = "DIALECT")]
    pub(crate) dialect: DialectName,
    /// The name of the codec and of its files
    #[arg(value_name = "NAME")]
    pub(crate) name: CodecName,
    /// The directory for the files; it is created if there is none
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
}

/// A further report, and the file that it goes to.
#[derive(Clone, Debug)]
pub(crate) struct ReportFile {
    pub(crate) format: Format,
    pub(crate) path: PathBuf,
}

fn format(name: &str) -> Result<Format, String> {
    let names = || Format::ALL.map(Format::name).join(", ");
    let found = Format::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| format!("there is no format `{name}`: use one of {}", names()))
}

fn report(text: &str) -> Result<ReportFile, String> {
    let (name, path) = text.split_once('=').ok_or("a report has a format and a file, as in junit=report.xml")?;
    match path {
        "" => Err("the file is missing after `=`, as in junit=report.xml".to_owned()),
        path => Ok(ReportFile { format: format(name)?, path: path.into() }),
    }
}

#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("input").args(["hex", "base64", "fields", "message", "stream"]).required(true))]
pub(crate) struct Run {
    /// File with the decoder, or with --fields the encoder; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Read messages from standard input, a line of JSON each, and print a line for each result; several run at once
    #[arg(long)]
    pub(crate) stream: bool,
    /// Messages of a stream to run in parallel [default: number of processors]
    #[arg(long, value_name = "N", requires = "stream", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Print the result with logs, warnings and cost as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One message, and what runs on it besides the function itself.
#[derive(Debug, ClapArgs)]
pub(crate) struct MessageArgs {
    /// Payload to decode, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub(crate) hex: Option<HexBytes>,
    /// Payload to decode, in Base64
    #[arg(long, value_name = "BASE64", value_parser = base64, conflicts_with = "hex")]
    pub(crate) base64: Option<HexBytes>,
    /// JSON object to encode, instead of a payload to decode
    #[arg(long, value_name = "JSON", conflicts_with_all = ["hex", "base64", "converter", "validator"])]
    pub(crate) fields: Option<JsonObject>,
    /// File with an uplink as ChirpStack, The Things Stack, The Things Network 2 or LORIOT reports it, in JSON; `-` is
    /// standard input. A topic before it, and what Node-RED puts around it, are left out
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hex", "base64", "fields"])]
    pub(crate) message: Option<PathBuf>,
    /// Port that the functions see [default: that of the message, or 1]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u8>,
    /// File with a converter; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) converter: Option<PathBuf>,
    /// File with a validator; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) validator: Option<PathBuf>,
    /// File with a JSON object: the variables that the functions see, where a message has none of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) variables: Option<PathBuf>,
    /// Dialect [default: detected from the source]
    #[arg(long, alias = "style", value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectName>,
    /// Current time that the functions see, as in 2026-01-01T00:00:00Z [default: that of the message, or now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Timestamp>,
}

#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("input").args(["hex", "base64", "fields", "message"]))]
pub(crate) struct Bench {
    /// Files and directories with codecs and their examples; with a message, one file with a function
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Measure only codecs whose id contains this text, as in vendor/model
    #[arg(long, value_name = "TEXT", conflicts_with = "input")]
    pub(crate) filter: Option<String>,
    /// Measure only examples whose description contains this text, or the example with this number
    #[arg(long, value_name = "TEXT", conflicts_with = "input")]
    pub(crate) example: Option<String>,
    /// Messages to run of each example, each in a fresh sandbox; fewer if that takes more than 5 s
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Compare with the measurements in the file NAME.bench.json of this directory
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<BaselineName>,
    /// Save the measurements as NAME.bench.json in this directory, unless something fails
    #[arg(long, value_name = "NAME")]
    pub(crate) save_baseline: Option<BaselineName>,
    /// End with exit code 1 if fuel has risen by more than this since the baseline, as in 1%
    #[arg(long, value_name = "PERCENT", requires = "baseline")]
    pub(crate) fail_above: Option<Threshold>,
    /// Also run the functions in another engine: those of a local Node.js, which is no sandbox
    #[arg(long, value_name = "ENGINE", conflicts_with_all = ["converter", "validator"])]
    pub(crate) peer: Option<PeerName>,
    /// Format of the output: human, json, markdown or html
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = bench_format)]
    pub(crate) format: BenchFormat,
}

/// An engine to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerName {
    /// A local Node.js, in contexts of its `vm`
    Node,
}

fn bench_format(name: &str) -> Result<BenchFormat, String> {
    let names = || BenchFormat::ALL.map(BenchFormat::name).join(", ");
    let found = BenchFormat::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| format!("there is no format `{name}`: use one of {}", names()))
}

#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("input").args(["hex", "base64", "fields", "message"]).required(true))]
pub(crate) struct Profile {
    /// File with the decoder, or with --fields the encoder; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    /// Show all lines, not only those near one that ran
    #[arg(long, conflicts_with = "json")]
    pub(crate) all_lines: bool,
    /// Print JSON: lines, functions and coverage
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a flame graph to this file, for a browser; `-` prints it instead of the listing
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a profile to this file, for speedscope.app; `-` prints it instead of the listing
    #[arg(long, value_name = "FILE")]
    pub(crate) speedscope: Option<PathBuf>,
}
