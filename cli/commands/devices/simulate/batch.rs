//! `airlock devices simulate --batch`: sends the uplinks of a file, and tells which of them failed.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context, bail};
use api::{handler::SimulatedUplinkMessage, rest::handler::SimulatedUplink, uplink::UplinkAnswer};
use client::handler::HandlerClient;
use futures::{Stream, StreamExt, stream};
use tokio::sync::mpsc;
use types::AppId;

use crate::{
    command_context::CommandContext,
    output::{Cell, Table},
};

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Maximum number of lines that are read ahead.
const LINES_AHEAD: usize = 64;
/// Maximum number of failed uplinks in the list.
const FAILURES_MAX: usize = 1000;

/// A line of the file with its number, or why it is not an uplink.
type Line = (u64, Result<SimulatedUplinkMessage, String>);

/// The results of the lines so far.
#[derive(Default)]
struct Progress {
    /// The lines that were sent and not answered.
    sent: VecDeque<u64>,
    done: u64,
    failed: u64,
    /// The first of those that failed, and why.
    failures: Vec<(u64, String)>,
}

/// Sends the uplinks of a file, or of standard input if it is `-`. An error if one of them fails.
pub(in crate::commands::devices) async fn run(
    context: &CommandContext,
    handler: &HandlerClient,
    app_id: &AppId,
    file: &Path,
) -> anyhow::Result<()> {
    let input: Box<dyn Read + Send> = match file == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(file).with_context(|| format!("cannot read {}", file.display()))?),
    };
    let progress = Arc::new(Mutex::new(Progress::default()));
    let sent = send(read(input, app_id.to_string()), Arc::clone(&progress));
    let ended = receive(handler, sent, &progress).await;
    let mut progress = std::mem::take(&mut *progress.lock().unwrap_or_else(PoisonError::into_inner));
    report(context, &mut progress)?;
    ended.with_context(|| match progress.sent.front() {
        Some(line) => format!("the lines before {line} were answered"),
        None => "all lines that were sent were answered".to_owned(),
    })?;
    match progress.failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} uplinks failed", failed + progress.done),
    }
}

/// Reads the file in a thread of its own, which nothing waits for: somebody may type it.
fn read(input: impl Read + Send + 'static, app_id: String) -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    thread::spawn(move || {
        let mut input = BufReader::new(input);
        for number in 1.. {
            let mut line = Vec::new();
            let read = input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
            let line = match read {
                Ok(0) => return,
                Ok(_) if line.len() as u64 > LINE_BYTES_MAX && !line.ends_with(b"\n") => {
                    _ = skip_line(&mut input);
                    Err(format!("it has more than {LINE_BYTES_MAX} bytes"))
                }
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => parse(&line, &app_id),
                Err(error) => {
                    _ = sender.blocking_send((number, Err(format!("it cannot be read: {error}"))));
                    return;
                }
            };
            if sender.blocking_send((number, line)).is_err() {
                return;
            }
        }
    });
    lines
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        let (length, is_end) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

fn parse(line: &[u8], app_id: &str) -> Result<SimulatedUplinkMessage, String> {
    if line.trim_ascii().first() != Some(&b'{') {
        return Err("it must be a JSON object".to_owned());
    }
    let uplink: SimulatedUplink = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let SimulatedUplink { app_id: named, dev_id, payload, port } = uplink;
    if !named.is_empty() && named != app_id {
        return Err(format!("it is of application {named}, not {app_id}"));
    }
    Ok(SimulatedUplinkMessage { app_id: app_id.to_owned(), dev_id, payload, port })
}

/// The uplinks of the lines; what is none counts as failed.
fn send(lines: mpsc::Receiver<Line>, progress: Arc<Mutex<Progress>>) -> impl Stream<Item = SimulatedUplinkMessage> {
    let lines = stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
    lines.filter_map(move |(number, line)| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        let uplink = match line {
            Ok(uplink) => {
                progress.sent.push_back(number);
                Some(uplink)
            }
            Err(reason) => {
                progress.fail(number, reason);
                None
            }
        };
        std::future::ready(uplink)
    })
}

async fn receive(
    handler: &HandlerClient,
    uplinks: impl Stream<Item = SimulatedUplinkMessage> + Send + 'static,
    progress: &Mutex<Progress>,
) -> anyhow::Result<()> {
    let mut answers = handler.simulate_uplinks(uplinks).await?;
    while let Some(answer) = answers.next().await? {
        progress.lock().unwrap_or_else(PoisonError::into_inner).add(answer);
    }
    Ok(())
}

fn report(context: &CommandContext, progress: &mut Progress) -> anyhow::Result<()> {
    let Progress { failures, done, failed, .. } = progress;
    failures.sort();
    if !failures.is_empty() {
        let row = |(line, reason): &(u64, String)| [Cell::new(line.to_string(), *line), reason.as_str().into()];
        context.output.table(Table::new([("line", "Line"), ("reason", "Reason")], failures.iter().map(row)), "")?;
    }
    if *failed > failures.len() as u64 {
        context.output.message(format_args!("The first {} that failed are listed", failures.len()))?;
    }
    context.output.message(format_args!("Uplinks: {done} sent, {failed} failed"))
}

impl Progress {
    fn add(&mut self, answer: UplinkAnswer) {
        let Some(line) = self.sent.pop_front() else { return };
        let failure = match (answer.error, answer.result.and_then(|result| result.outcome)) {
            (Some(error), _) => Some(error.message),
            (None, Some(outcome)) if !outcome.failure.is_empty() => {
                Some(format!("published without fields: {}", outcome.failure.lines().next().unwrap_or_default()))
            }
            (None, _) => None,
        };
        match failure {
            Some(reason) => self.fail(line, reason),
            None => self.done += 1,
        }
    }

    fn fail(&mut self, line: u64, reason: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push((line, reason));
        }
    }
}
