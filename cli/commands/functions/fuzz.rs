//! `airlock functions fuzz`: runs codecs on random payloads, and reports findings.

use std::{path::PathBuf, sync::Arc};

use anyhow::bail;
use clap::{Args, ValueEnum};
use runtime::Engine;
use types::Timestamp;
use workbench::{BadInput, FuzzPlan, FuzzReport, counted, save};

use super::{
    args::values::{port, time},
    output::{colour::coloured, problems::end},
};
use crate::{
    terminal::{json_lines, say, warn},
    values::dialect::DialectName,
};

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Files and directories with codecs, and with examples of their payloads
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fuzz only codecs whose id contains this text, as in vendor/model
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Ports besides those of the examples, as in 1,2,85 [default: 1 if there are no examples]
    #[arg(long, visible_alias = "port", value_name = "N", value_delimiter = ',', value_parser = port)]
    ports: Vec<u8>,
    /// Chooses the payloads: the same seed gives the same report
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Random messages for each codec
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,
    /// Maximum length of payloads, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 242, value_parser = clap::value_parser!(u8).range(0..=242))]
    max_length: u8,
    /// Dialect [default: that of the codec, or detected from the source]
    #[arg(long, value_name = "DIALECT")]
    dialect: Option<DialectName>,
    /// Current time that the functions see, as in 2026-01-01T00:00:00Z [default: that of the example, or this]
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Timestamp>,
    /// Write the smallest payload of each finding as an example into NAME.test.yaml beside NAME.js; nothing is
    /// overwritten
    #[arg(long)]
    save: bool,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: FuzzFormat,
    /// Codecs to fuzz in parallel [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FuzzFormat {
    /// Text for people
    Human,
    /// A JSON object in a line for each codec
    Json,
}

/// Totals of all codecs.
#[derive(Default)]
struct Total {
    codecs: usize,
    failed: usize,
    findings: usize,
    problems: Vec<BadInput>,
}

pub(super) fn run(command: &Fuzz, settings: &runtime::Settings) -> anyhow::Result<()> {
    let engine = Arc::new(Engine::new(settings)?);
    let found = workbench::find(&command.files, command.filter.as_deref(), &engine);
    let plan = command.plan();
    let jobs = command.jobs.map(usize::from);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut total = Total { problems: found.problems, ..Total::default() };
    workbench::fuzz(&engine, &found.codecs, &plan, jobs, |codec, report| {
        print(&report, command.format)?;
        if command.save && !report.findings.is_empty() {
            match save(&report, codec, &plan) {
                Ok(saved) if saved.added == 0 => {}
                Ok(saved) => {
                    warn(format_args!("added {} to {}", counted(saved.added, "example"), saved.file.display()))?;
                }
                Err(problem) => total.problems.push(problem),
            }
        }
        total.codecs += 1;
        total.failed += usize::from(report.has_failed());
        total.findings += report.findings.len();
        Ok::<(), anyhow::Error>(())
    })?;
    total.end()
}

fn print(report: &FuzzReport, format: FuzzFormat) -> anyhow::Result<()> {
    match format {
        FuzzFormat::Human => say(coloured(report.text().trim_end())),
        FuzzFormat::Json => say(json_lines(report, false)?),
    }
}

impl Fuzz {
    fn plan(&self) -> FuzzPlan {
        FuzzPlan {
            seed: self.seed,
            count: self.count,
            length_max: self.max_length.into(),
            ports: self.ports.clone(),
            time_ms: self.time.map(Timestamp::as_millis),
            dialect: self.dialect.map(Into::into),
            time_max: None,
        }
    }
}

impl Total {
    /// The error if something could not be read or written, or if something is wrong with a codec.
    fn end(self) -> anyhow::Result<()> {
        end(self.problems)?;
        match self.failed {
            0 => Ok(()),
            failed => {
                bail!("{}; {failed} of {} codecs failed", counted(self.findings, "finding"), self.codecs)
            }
        }
    }
}
