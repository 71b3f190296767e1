#![doc = include_str!("../README.md")]

mod bench;
mod codec;
mod file;
mod fuzz;
mod layout;
mod lint;
mod port;
mod report;
mod run;
mod save;
mod text;
mod watch;

pub use bench::{
    baseline::{BaselineName, Compared, Threshold},
    figures::{Bench, Change, CodecBench, LineFuel, Loading, MessageBench, Peer},
    measure::{Plan, measure_codec, measure_message},
    node::Node,
    report::BenchFormat,
    statistics::Summary,
};
pub use codec::{
    Codec, Example, Excluded, Expected, Input, Tolerance,
    compare::{Difference, Rules, differences, json_differences, truncate},
};
pub use file::{disk::read_script, is_stdin, pending_file::PendingFile};
pub use fuzz::{FuzzFinding, FuzzPlan, FuzzReport, Unread, fuzz};
pub use layout::{
    BadInput, Found,
    lines::named::read,
    named::{find, read_function},
    template::{CodecName, NewFile, write_new},
};
pub use lint::{
    LintReport, Verdict,
    finding::{Finding, Level, Rule},
    lint,
    report::{LintFormat, LintReporter, LintTotals},
    target::Target,
};
pub use port::{Ported, port};
pub use report::{
    CodecReport, ExampleOutcome, ExampleReport, Loaded, Mismatch,
    cost::Cost,
    counted,
    coverage::{ScriptCoverage, TotalCoverage},
    describe,
    format::{Format, text::Detail},
    log_line, microseconds,
    profile::{
        FunctionProfile, LineProfile, Profile, SourceProfile,
        coverage::{Coverage, Reached},
    },
    reporter::Reporter,
    totals::Totals,
};
pub use run::{
    Engines,
    fault::FaultKind,
    run, run_on,
    update::{Updates, Written},
};
pub use save::{Saved, save};
pub use text::{json_problem::json_problem, place::Place};
pub use watch::Watch;
