//! `airlock replay`: stored uplinks of other networks run through a codec, and what would change.

pub(crate) mod args;
mod output;
mod progress;
mod report;
mod source;

use std::{sync::Arc, thread};

use anyhow::bail;
use replay::{Done, Replay, Report, Updates};
use runtime::{Engine, Sources};
use types::Clock;
use workbench::{BadInput, describe, is_stdin, read_function};

use self::{args::ReplayCommand, output::Outputs, progress::Progress, report::Summary};
use super::functions;
use crate::{settings::Settings, terminal::say};

/// How much of the hash of the codec a report has.
const HASH_BYTES: usize = 6;

pub(crate) async fn run(command: ReplayCommand, settings: &Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let sources = codec(&command)?;
    let mut outputs = Outputs::create(&command)?;
    let engine = Arc::new(Engine::new(&functions::sandbox(settings))?);
    let functions =
        engine.load(&sources, engine.limits()).map_err(|failure| anyhow::Error::msg(describe(&failure, &sources)))?;
    let started = clock.now();
    let hash = hex::encode(&sources.hash().as_bytes()[..HASH_BYTES]);
    let shown = source::shown(&command.from);
    outputs.begin(&command, &shown, &hash)?;
    let source = source::open(&command, started).await?;
    let replay = Replay {
        engine: &engine,
        functions: &functions,
        filter: command.filter(started),
        now: started,
        jobs: command.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from),
        writes_lines: outputs.has_lines(),
        updates: command.sql.as_ref().map(|_| Updates::new(&command.table)),
    };
    let (mut report, mut progress) = (Report::default(), Progress::new(started));
    let read = replay.run(source, |Done { report: part, lines, sql }| {
        report.merge(part);
        progress.show(&report, clock);
        outputs.write(&lines, &sql)
    });
    progress.clear();
    read?;
    let summary = Summary { source: &shown, codec: &command.codec, hash, started, ended: clock.now(), report };
    outputs.finish(&summary)?;
    end(&summary.report)
}

/// The codec: a file that may define any of the functions.
fn codec(command: &ReplayCommand) -> anyhow::Result<Sources> {
    if command.from == "-" && is_stdin(&command.codec) {
        let reason = "`-` appears twice: standard input can be the uplinks or the codec";
        return Err(BadInput::Request(reason.to_owned()).into());
    }
    let file = command.codec.display().to_string();
    let text = read_function(&command.codec).map_err(|source| BadInput::File { file: file.clone(), source })?;
    if text.trim().is_empty() {
        return Err(BadInput::Request(format!("no codec in {file}: the file is empty")).into());
    }
    Ok(Sources { dialect: command.dialect.map(Into::into), ..Sources::single_file(text) })
}

/// The error that the exit code stands for, once the report is printed.
fn end(report: &Report) -> anyhow::Result<()> {
    match report {
        Report { damaged: 1.., .. } => {
            let places = workbench::counted(report.damaged as usize, "place");
            Err(BadInput::Request(format!("{places} in the source cannot be read")).into())
        }
        Report { counts, .. } if counts.uplinks == 0 => {
            Err(BadInput::Request("there are no such uplinks in the source".to_owned()).into())
        }
        Report { counts, .. } if counts.newly_failing > 0 => {
            bail!("newly failing: {}", workbench::counted(counts.newly_failing as usize, "uplink"))
        }
        _ => Ok(()),
    }
}

/// Prints a part of the report that ends with a line break.
fn print(text: &str) -> anyhow::Result<()> {
    say(text.trim_end())
}
