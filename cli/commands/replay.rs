//! `airlock replay`: stored uplinks of other networks run through a codec, and what would change.

pub(crate) mod args;
mod codecs;
mod output;
mod progress;
mod report;
mod source;

use std::{path::Path, sync::Arc, thread};

use anyhow::bail;
use replay::{Defaults, Done, Replay, Report, Updates};
use runtime::Engine;
use types::Clock;
use workbench::BadInput;

use self::{args::ReplayCommand, output::Outputs, progress::Progress, report::Summary};
use super::functions;
use crate::{settings::Settings, terminal::say};

pub(crate) async fn run(command: ReplayCommand, settings: &Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let engine = Arc::new(Engine::new(&functions::sandbox(settings))?);
    let (codecs, loaded) = codecs::load(&command, &engine)?;
    let extra = command.variables.as_deref().map_or(Ok(String::new()), functions::variables)?;
    let mut outputs = Outputs::create(&command)?;
    let started = clock.now();
    let shown = source::shown(&command.from);
    outputs.begin(&command, &shown, &loaded)?;
    let source = source::open(&command, started).await?;
    let replay = Replay {
        engine: &engine,
        codecs: &codecs,
        filter: command.filter(started),
        defaults: &Defaults { time: started, extra },
        jobs: command.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from),
        output: outputs.format(),
        updates: command.sql.as_ref().map(|_| Updates::new(&command.table)),
    };
    let (mut report, mut progress) = (Report::default(), Progress::new(started));
    let read = replay.run(source, |Done { report: part, lines, rows, sql }| {
        report.merge(part);
        progress.show(&report, clock);
        outputs.write(&lines, rows, &sql)
    });
    progress.clear();
    read?;
    let summary = Summary { source: &shown, codecs: loaded, started, ended: clock.now(), report };
    outputs.finish(&summary)?;
    end(&summary.report, codecs::unmet(&codecs, &summary.codecs, &summary.report))
}

/// The error that the exit code stands for, once the report is printed. `unmet` says which codecs did not run because no
/// uplink has their profile.
fn end(report: &Report, unmet: Option<String>) -> anyhow::Result<()> {
    match (report, unmet) {
        (Report { damaged: 1.., .. }, _) => {
            let places = workbench::counted(report.damaged as usize, "place");
            Err(BadInput::Request(format!("{places} in the source cannot be read")).into())
        }
        (_, Some(unmet)) => Err(BadInput::Request(unmet).into()),
        (Report { counts, .. }, None) if counts.uplinks == 0 => {
            Err(BadInput::Request("there are no such uplinks in the source".to_owned()).into())
        }
        (Report { counts, .. }, None) if counts.newly_failing > 0 => {
            bail!("newly failing: {}", workbench::counted(counts.newly_failing as usize, "uplink"))
        }
        _ => Ok(()),
    }
}

/// Prints a part of the report that ends with a line break.
fn print(text: &str) -> anyhow::Result<()> {
    say(text.trim_end())
}

/// Returns true if the name of a file says that it is Parquet.
fn has_parquet_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}
