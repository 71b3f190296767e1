//! Messages as lines of JSON from standard input, and results as lines of standard output, in the same order.
//!
//! Lines go to the workers in small batches, in turn, and their results are taken in the same turn. A batch ends where no
//! further line has come, so that whoever sends one line at a time gets each result at once.

use std::{
    io::{self, BufRead, BufReader, Read as _, Write as _},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use anyhow::{Context, bail};
use runtime::{Engine, Functions, Sandbox, Sources};
use types::Clock;

use super::{
    super::args::{Run, message::load, values::variables},
    line::{self, Defaults},
    report::Report,
};
use crate::terminal::json_lines;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of lines in a batch. A batch also ends at a line with which it reaches `BATCH_BYTES`.
const BATCH_LINES: usize = 64;
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of batches that wait for each worker, and of its results that wait to be written.
const BATCHES_MAX: usize = 2;
const INPUT_BYTES: usize = 256 * 1024;

struct Batch {
    lines: Vec<Result<String, String>>,
    defaults: Defaults,
}

/// Runs until the input ends. A message whose functions fail, and a line that is none, have a line of output each.
pub(super) fn run(
    command: &Run,
    sources: &Sources,
    settings: &runtime::Settings,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    let engine = Arc::new(Engine::new(settings)?);
    let functions = load(&engine, sources)?;
    let extra: Arc<str> = command.message.variables.as_deref().map_or(Ok(String::new()), variables)?.into();
    let jobs = command.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    thread::scope(|scope| {
        let (mut batches, mut results, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..jobs {
            let (batch, waiting) = sync_channel(BATCHES_MAX);
            let (result, finished) = sync_channel(BATCHES_MAX);
            let (sandbox, functions) = (engine.sandbox(), &functions);
            workers.push(scope.spawn(move || work(sandbox, functions, &waiting, &result)));
            batches.push(batch);
            results.push(finished);
        }
        let writing = scope.spawn(move || write(&results));
        let read = deal(command, &extra, &batches, clock);
        drop(batches);
        let (written, worked) = (writing.join(), workers.into_iter().all(|worker| worker.join().is_ok()));
        let (Ok(written), true) = (written, worked) else { bail!("Airlock panicked; please report this bug") };
        read.and(written)
    })
}

/// Gives the lines of standard input to the workers in turn, until it ends or nobody takes them any more.
fn deal(command: &Run, extra: &Arc<str>, batches: &[SyncSender<Batch>], clock: &dyn Clock) -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(INPUT_BYTES, io::stdin());
    for batch in batches.iter().cycle() {
        let lines = read_lines(&mut input).context("cannot read standard input")?;
        let (port, time) = (command.message.port, command.message.time);
        let defaults = Defaults { port, time, now: clock.now(), extra: extra.clone() };
        if lines.is_empty() || batch.send(Batch { lines, defaults }).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The lines that have come, at least one; none at the end.
fn read_lines(input: &mut BufReader<impl io::Read>) -> io::Result<Vec<Result<String, String>>> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while let Some(line) = read_line(input)? {
        bytes += line.as_ref().map_or(0, String::len);
        lines.push(line);
        if lines.len() == BATCH_LINES || bytes >= BATCH_BYTES || !input.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(lines)
}

fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() > LINE_BYTES_MAX && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(Some(Err(format!("the line has more than {LINE_BYTES_MAX} bytes"))));
    }
    Ok(Some(String::from_utf8(line).map_err(|_| "the line is not UTF-8".to_owned())))
}

fn work(mut sandbox: Sandbox, functions: &Functions, batches: &Receiver<Batch>, results: &SyncSender<String>) {
    while let Ok(Batch { lines, defaults }) = batches.recv() {
        let mut text = String::new();
        for line in lines {
            text += &match line {
                Ok(line) => result(&mut sandbox, functions, &line, &defaults),
                Err(error) => printed(&Report::of_error(&error)),
            };
            text.push('\n');
        }
        if results.send(text).is_err() {
            return;
        }
    }
}

fn result(sandbox: &mut Sandbox, functions: &Functions, text: &str, defaults: &Defaults) -> String {
    let (id, call) = line::parse(text, defaults);
    match call {
        Ok(call) => {
            let outcome = sandbox.call(functions, &call);
            printed(&Report::of(&outcome).with_id(id))
        }
        Err(error) => printed(&Report::of_error(&error).with_id(id)),
    }
}

fn printed(report: &Report<'_>) -> String {
    json_lines(report, false).unwrap_or_else(|error| format!(r#"{{"error":"cannot write the result: {error}"}}"#))
}

/// Writes results in the order of their batches. The first worker without one has had the last batch.
fn write(results: &[Receiver<String>]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for result in results.iter().cycle() {
        let Ok(text) = result.recv() else { break };
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")?;
    }
    Ok(())
}
