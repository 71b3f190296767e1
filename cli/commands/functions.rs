//! `airlock functions …`: payload functions in a local sandbox, without a server.

pub(crate) mod args;
mod serve;

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use runtime::{Call, CallOutcome, Dialect, Engine, EntryPoint, Failure, Slot, Sources, Value};
use types::Clock;

use self::args::{Bench, Check, Functions, Run};
use crate::{
    codec_check::{self, Codec, CodecReport, Detail, describe, log_line, microseconds, truncate},
    script,
    settings::Settings,
    terminal::{fields, json, sanitize, say},
};

/// The seed of `Math.random`.
const SEED: u64 = 1;

/// Maximum number of names in the note about unknown members.
const UNKNOWN_MEMBERS_MAX: usize = 40;

pub(crate) async fn run(command: Functions, settings: Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    // No cache: the commands measure how long loading takes, and a device repository has thousands of functions.
    let sandbox = || runtime::Settings { cache_bytes_max: 0, ..settings.sandbox.clone() };
    match command {
        Functions::Check(command) => check(&command, &sandbox()),
        Functions::Run(run) => run_once(&run, &sandbox(), clock),
        Functions::Bench(command) => bench(&command, &sandbox(), clock),
        Functions::Serve(command) => serve::run(command, settings).await,
    }
}

fn check(command: &Check, settings: &runtime::Settings) -> anyhow::Result<()> {
    let codecs = codec_check::read(&command.files, command.id.as_deref())?;
    if !command.quiet {
        note_unknown_members(&codecs);
    }
    let engine = Arc::new(Engine::new(settings)?);
    let jobs = command.jobs.map(usize::from);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let totals = codec_check::check(&engine, &codecs, jobs, |report| print(command, report))?;
    say(if command.json { json(&totals)? } else { totals.to_string() })?;
    match totals.codecs_failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} codecs failed", totals.codecs),
    }
}

/// Prints a report, and flushes it because the next one may take a while.
fn print(command: &Check, report: &CodecReport) -> anyhow::Result<()> {
    let detail = match (command.quiet, command.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    let text = if command.json { json(report)? + "\n" } else { report.text(detail) };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Names ignored members on standard error, because one of them may be a mistake.
fn note_unknown_members(codecs: &[Codec]) {
    let names: BTreeSet<&str> = codecs.iter().flat_map(|codec| &codec.unknown_members).map(String::as_str).collect();
    if !names.is_empty() {
        let names: Vec<String> =
            names.into_iter().take(UNKNOWN_MEMBERS_MAX).map(|name| sanitize(&truncate(name))).collect();
        // With standard error closed, there is nobody to tell.
        _ = writeln!(io::stderr(), "note: ignored unknown members: {}", names.join(", "));
    }
}

fn run_once(run: &Run, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let sources = sources(run)?;
    let engine = Arc::new(Engine::new(settings)?);
    let functions = load(&engine, &sources)?;
    let report = engine.sandbox().call(&functions, &call(run, clock));
    report.logs.iter().try_for_each(|entry| say(sanitize(&log_line(entry))))?;
    report.warnings.iter().try_for_each(|warning| say(format_args!("warning: {}", sanitize(warning))))?;
    let cost = format!("{:.0} µs, fuel {}", microseconds(report.elapsed), report.fuel);
    match &report.result {
        Ok(value) => {
            print_value(value)?;
            say(cost)
        }
        Err(failure) => {
            say(cost)?;
            Err(to_error(failure, &sources))
        }
    }
}

fn bench(bench: &Bench, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    let sources = sources(&bench.run)?;
    let engine = Arc::new(Engine::new(settings)?);
    let start = Instant::now();
    let functions = load(&engine, &sources)?;
    let load = start.elapsed();
    let (mut sandbox, call) = (engine.sandbox(), call(&bench.run, clock));
    let mut run = || -> anyhow::Result<CallOutcome> {
        let report = sandbox.call(&functions, &call);
        match &report.result {
            Ok(_) => Ok(report),
            Err(failure) => Err(to_error(failure, &sources)),
        }
    };
    let first = run()?;
    let mut times = (0..bench.count).map(|_| Ok(run()?.elapsed)).collect::<anyhow::Result<Vec<Duration>>>()?;
    times.sort_unstable();
    let at = |percent: usize| microseconds(times[(times.len() - 1) * percent / 100]);
    let (fuel, fuel_max) = (first.fuel, settings.limits.fuel);
    fields([
        ("messages", times.len().to_string()),
        ("median", format!("{:.1} µs", at(50))),
        ("p99", format!("{:.1} µs", at(99))),
        ("fuel", format!("{fuel} of {fuel_max}, {:.2}%", 100.0 * fuel as f64 / fuel_max as f64)),
        ("first message", format!("{:.1} µs", microseconds(first.elapsed))),
        ("loading", format!("{:.1} ms, fuel {}", 1e3 * load.as_secs_f64(), functions.load_fuel())),
        ("idle memory", format!("{} bytes", functions.idle_bytes())),
    ])
}

fn sources(run: &Run) -> anyhow::Result<Sources> {
    let files = [Some(&run.file), run.converter.as_ref(), run.validator.as_ref()];
    if files.into_iter().flatten().filter(|file| script::is_stdin(file)).count() > 1 {
        bail!("`-` appears more than once: standard input can be only one of the functions");
    }
    let read = |file: Option<&PathBuf>, slot| file.map_or_else(|| Ok(String::new()), |file| read_function(file, slot));
    let (decoder, encoder) = match run.fields {
        None => (Some(&run.file), None),
        Some(_) => (None, Some(&run.file)),
    };
    Ok(Sources {
        decoder: read(decoder, Slot::Decoder)?,
        converter: read(run.converter.as_ref(), Slot::Converter)?,
        validator: read(run.validator.as_ref(), Slot::Validator)?,
        encoder: read(encoder, Slot::Encoder)?,
        dialect: run.dialect.map(Into::into),
        ..Sources::default()
    })
}

/// Reads a function. A blank file would silently skip a step, so it is an error.
fn read_function(file: &Path, slot: Slot) -> anyhow::Result<String> {
    let text = script::read(file)?;
    if text.trim().is_empty() {
        let names = Dialect::ALL.into_iter().filter_map(|dialect| dialect.function_name(slot));
        let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        bail!("no {} in {}: the file is empty; expected a function named {names}", slot.name(), file.display());
    }
    Ok(text)
}

/// Loads the functions; the error says if an encoder was given as a decoder, or the reverse.
fn load(engine: &Engine, sources: &Sources) -> anyhow::Result<runtime::Functions> {
    engine.load(sources, engine.limits()).map_err(|failure| {
        let (decoder, encoder) = (sources.encoder.clone(), sources.decoder.clone());
        let swapped = Sources { decoder, encoder, dialect: sources.dialect, ..Sources::default() };
        let loads_swapped = || engine.load(&swapped, engine.limits()).is_ok();
        let error = to_error(&failure, sources);
        match failure.slot {
            Slot::Decoder if loads_swapped() => anyhow!("{error}; it is an encoder, which needs --fields"),
            Slot::Encoder if loads_swapped() => anyhow!("{error}; it is a decoder, which needs --hex"),
            _ => error,
        }
    })
}

fn call(run: &Run, clock: &dyn Clock) -> Call {
    let (entry_point, payload) = match (&run.fields, &run.hex) {
        (Some(fields), _) => (EntryPoint::EncodeDownlink, fields.0.get().as_bytes().to_vec()),
        (None, bytes) => (EntryPoint::Uplink, bytes.as_ref().map(|payload| payload.0.clone()).unwrap_or_default()),
    };
    let time_ms = run.time.unwrap_or_else(|| clock.now()).as_millis();
    Call { entry_point, port: run.port, time_ms, seed: SEED, payload, extra: String::new(), single_function: None }
}

fn print_value(value: &Value) -> anyhow::Result<()> {
    match value {
        Value::Fields { json, normalized, valid } => {
            say(sanitize(json.get()))?;
            if let Some(normalized) = normalized {
                say(format_args!("normalized: {}", sanitize(normalized.get())))?;
            }
            if *valid { Ok(()) } else { say("not valid: it would not be published") }
        }
        Value::Bytes { bytes, port: Some(port) } => say(format_args!("{} on port {port}", hex::encode(bytes))),
        Value::Bytes { bytes, port: None } => say(hex::encode(bytes)),
        Value::Returned { json } => say(sanitize(json.as_ref().map_or("undefined", |json| json.get()))),
    }
}

/// The failure with its source line, as the command's error.
fn to_error(failure: &Failure, sources: &Sources) -> anyhow::Error {
    anyhow::Error::msg(describe(failure, sources))
}
