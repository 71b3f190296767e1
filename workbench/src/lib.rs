#![doc = include_str!("../README.md")]

mod bench;
mod call;
mod codec;
mod compare;
mod cost;
mod fault;
mod fuzz;
mod json_problem;
mod layout;
mod lint;
mod memory_size;
mod pending_file;
mod place;
mod port;
mod profile;
mod report;
mod run;
mod script;
mod source;
mod span;
mod surrogates;
mod template;
mod update;
mod watch;
mod yaml;
mod yaml_text;

pub use bench::{
    baseline::{BaselineName, Compared, Threshold},
    figures::{Bench, Change, CodecBench, LineFuel, Loading, MessageBench, Peer},
    measure::{Plan, measure_codec, measure_message},
    node::Node,
    report::BenchFormat,
    statistics::Summary,
};
pub use codec::{Codec, Example, Excluded, Expected, Input, Tolerance};
pub use compare::{Difference, Rules, differences, truncate};
pub use cost::Cost;
pub use fault::FaultKind;
pub use fuzz::{FuzzFinding, FuzzPlan, FuzzReport, Saved, Unread, fuzz, save};
pub use json_problem::json_problem;
pub use layout::{BadInput, Found, find, lines::read, read_function};
pub use lint::{
    LintReport, Verdict,
    finding::{Finding, Level, Rule},
    lint,
    report::{LintFormat, LintReporter, LintTotals},
    target::Target,
};
pub use pending_file::PendingFile;
pub use place::Place;
pub use port::{Ported, port};
pub use profile::{
    FunctionProfile, LineProfile, Profile, SourceProfile,
    coverage::{Coverage, Reached},
};
pub use report::{
    CodecReport, ExampleReport, Loaded, Mismatch, Outcome, counted,
    coverage::{ScriptCoverage, TotalCoverage},
    describe,
    format::Format,
    log_line, microseconds,
    reporter::Reporter,
    text::Detail,
    totals::Totals,
};
pub use run::{Engines, run, run_on};
pub use script::{is_stdin, read_script};
pub use template::{CodecName, NewFile, write_new};
pub use update::{Updates, Written};
pub use watch::Watch;
