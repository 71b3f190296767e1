//! `airlock functions bench`: what messages cost, compared with earlier runs and with another engine.

use std::{path::Path, sync::Arc};

use anyhow::{Context, bail, ensure};
use runtime::Engine;
use types::Clock;
use workbench::{BadInput, BaselineName, Bench as Report, BenchFormat, CodecBench, Compared, Node, Plan, counted};

use super::{
    args::{
        Bench,
        message::{call, load, sources},
    },
    output::problems::end_beside,
};
use crate::terminal::{json_lines, say, warn};

/// Advice for a baseline that does not fit.
const SAVE_ANOTHER: &str = "save a new one with --save-baseline";

pub(super) fn run(command: &Bench, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    if command.save_baseline.is_some() && (command.filter.is_some() || command.example.is_some()) {
        let reason = "--save-baseline saves only what was measured: leave out --filter and --example";
        return Err(BadInput::Request(reason.to_owned()).into());
    }
    let peer = command.peer.map(|_| Node { count: command.count });
    if let Some(node) = peer {
        node.check().context("cannot run `node`: install Node.js, or leave out --peer")?;
    }
    let baseline = command.baseline.as_ref().map(read).transpose()?;
    let engine = Arc::new(Engine::new(settings)?);
    let profiling = command.format.has_lines().then(|| Engine::profiling(settings)).transpose()?;
    let plan = Plan { count: command.count, example: command.example.as_deref(), profiling: profiling.as_ref(), peer };
    let (codecs, problems) = measure(command, &engine, plan, clock)?;
    let mut report = Report::new(&engine, codecs);
    let compared = baseline.map(|baseline| compare(&mut report, &baseline));
    print(&report, command.format)?;
    if report.codecs.iter().all(|codec| codec.messages.is_empty()) && !report.codecs.is_empty() {
        let scripts = counted(report.codecs.len(), "script");
        warn(format_args!("{scripts} without examples: measured was only how long they take to load"))?;
    }
    match compared {
        Some(Ok(Compared { new: 1, .. })) => warn("1 message is not in the baseline")?,
        Some(Ok(Compared { new: new @ 2.., .. })) => warn(format_args!("{new} messages are not in the baseline"))?,
        _ => {}
    }
    judge(command, &report, problems)?;
    if let Some(Err(reason)) = compared {
        tell(command, reason)?;
    }
    // What is saved is the measure of later runs, so it must have passed.
    command.save_baseline.as_ref().map_or(Ok(()), |name| save(&report, name))
}

fn save(report: &Report, name: &BaselineName) -> anyhow::Result<()> {
    let file = name.file(Path::new(""));
    report.save(&file).map_err(|source| BadInput::Unwritable { file: file.display().to_string(), source })?;
    warn(format_args!("saved {}", file.display()))
}

/// Measures the message that is given, or all examples.
fn measure(
    command: &Bench,
    engine: &Arc<Engine>,
    plan: Plan<'_>,
    clock: &dyn Clock,
) -> anyhow::Result<(Vec<CodecBench>, Vec<BadInput>)> {
    let message = &command.message;
    let has_message =
        message.fields.is_some() || message.message.is_some() || message.hex.is_some() || message.base64.is_some();
    if has_message {
        let [file] = command.files.as_slice() else {
            return Err(BadInput::Request("a message is for one function: name one file".to_owned()).into());
        };
        let sources = sources(file, message)?;
        // The error of a function that cannot be loaded says more than a report would.
        load(engine, &sources)?;
        let bench =
            workbench::measure_message(engine, &file.display().to_string(), &sources, &call(message, clock)?, plan);
        return Ok((vec![bench], Vec::new()));
    }
    let found = workbench::find(&command.files, command.filter.as_deref(), engine);
    let codecs: Vec<_> = found.codecs.iter().map(|codec| workbench::measure_codec(engine, codec, plan)).collect();
    let has_messages = codecs.iter().any(|codec| codec.failure.is_some() || !codec.messages.is_empty());
    match &command.example {
        Some(example) if !has_messages && found.problems.is_empty() => {
            let reason = format!("no example is number {example}, or has that in its description");
            Err(BadInput::Request(reason).into())
        }
        _ => Ok((codecs, found.problems)),
    }
}

fn read(name: &BaselineName) -> anyhow::Result<Report> {
    let file = name.file(Path::new(""));
    Ok(Report::read(&file).map_err(|source| BadInput::File { file: file.display().to_string(), source })?)
}

/// Compares with a baseline, or returns the reason why it does not fit.
fn compare(report: &mut Report, baseline: &Report) -> Result<Compared, String> {
    if baseline.guest != report.guest {
        return Err(format!(
            "fuel was not compared: the baseline is of another sandbox, that of Airlock {}, which charges other fuel; \
             {SAVE_ANOTHER}",
            baseline.airlock
        ));
    }
    match report.compare(baseline) {
        Compared { known: 0, new: 1.. } => Err(format!("the baseline has none of these messages; {SAVE_ANOTHER}")),
        compared => Ok(compared),
    }
}

/// Without a comparison, nothing can be said about a rise.
fn tell(command: &Bench, reason: String) -> anyhow::Result<()> {
    if command.fail_above.is_some() { Err(BadInput::Request(reason).into()) } else { warn(reason) }
}

fn print(report: &Report, format: BenchFormat) -> anyhow::Result<()> {
    match format {
        BenchFormat::Json => say(json_lines(report, true)?),
        _ => say(report.text(format).trim_end()),
    }
}

/// The error if something failed or needs more fuel than it may. Time is never a reason: it depends on the machine.
fn judge(command: &Bench, report: &Report, problems: Vec<BadInput>) -> anyhow::Result<()> {
    end_beside(report.codecs.len(), problems)?;
    if let Some((id, failure)) = report.failures().next() {
        bail!("{} of the messages or codecs failed, the first in {id}: {failure}", report.failures().count());
    }
    if let Some(threshold) = command.fail_above {
        let risen = report.risen(threshold);
        ensure!(risen == 0, "fuel has risen by more than {threshold} since the baseline: {risen} times");
    }
    Ok(())
}
