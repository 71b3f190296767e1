//! `airlock devices simulate --batch`: sends the uplinks of a file, and tells which of them failed.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::Arc,
    thread,
};

use anyhow::{Context, bail};
use api::{handler::SimulatedUplinkMessage, rest::handler::SimulatedUplink, uplink::UplinkAnswer};
use client::handler::HandlerClient;
use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use types::{AppId, Kind, Kinded};

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
    let mut progress = std::mem::take(&mut *progress.lock());
    report(context, &mut progress)?;
    ended.map_err(|error| {
        let without_answer = progress.without_answer(is_refused(&error));
        error.context(without_answer)
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
        let mut progress = progress.lock();
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
        progress.lock().add(answer);
    }
    Ok(())
}

/// Returns true if an error says that nothing without an answer was handled.
fn is_refused(error: &anyhow::Error) -> bool {
    error.downcast_ref::<client::Error>().is_some_and(|error| match error {
        client::Error::Unreachable { .. } => true,
        _ => matches!(
            error.kind(),
            Kind::Unauthenticated | Kind::Denied | Kind::NotFound | Kind::Invalid | Kind::TooLarge | Kind::Unsupported
        ),
    })
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

    /// Says which lines got no answer, and how to go on without sending one twice.
    fn without_answer(&self, is_refused: bool) -> String {
        match (self.sent.front(), self.sent.back()) {
            (Some(first), Some(_)) if is_refused => format!("no line from {first} on was handled"),
            (Some(first), Some(last)) => format!(
                "all lines before {first} were answered, those from {first} to {last} may have been published, and no \
                 later one was sent: look for them with `airlock history list`, and send the others with `tail -n +{} \
                 FILE | airlock devices simulate --batch -`",
                last + 1
            ),
            _ => "all lines that were sent were answered".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_an_answer_are_named_unless_they_were_refused() {
        let progress = Progress { sent: (67..=322).collect(), ..Progress::default() };
        let lost = progress.without_answer(false);
        for part in ["before 67 were answered", "from 67 to 322 may have been published", "tail -n +323 "] {
            assert!(lost.contains(part), "{lost}");
        }
        assert_eq!(progress.without_answer(true), "no line from 67 on was handled");
        assert_eq!(Progress::default().without_answer(false), "all lines that were sent were answered");
    }

    #[test]
    fn only_a_refusal_says_that_nothing_was_handled() {
        let refused = |kind| client::Error::Refused { kind, message: "no".into(), retry_after: None };
        assert!(is_refused(&anyhow::Error::from(refused(Kind::Denied))));
        assert!(!is_refused(&anyhow::Error::from(refused(Kind::Unavailable))));
        let timeout = client::Error::Timeout { service: "handler", address: "a:1".into() };
        assert!(!is_refused(&anyhow::Error::from(timeout)));
    }
}
