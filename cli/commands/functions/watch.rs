//! `airlock functions watch`: tests codecs again when they are saved.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use runtime::Engine;
use tokio::time::sleep;
use workbench::{BadInput, CodecReport, Detail, Found, Rules, Totals, Watch as Watched, counted, is_stdin};

use super::{args::Watch, output::colour::coloured};
use crate::terminal::{sanitize, say, warn};

/// Pause between two checks for changes: short, so that a verdict feels immediate, and longer where a check takes long,
/// so that checks take at most a fifth of one processor.
const INTERVAL: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_millis(500);
const REST: u32 = 4;
/// Time without changes after which files are read: some editors first empty a file and then write it.
const SETTLE: Duration = Duration::from_millis(10);
const SETTLE_LOOKS_MAX: usize = 20;
/// Maximum number of failing codecs, and of files that are not valid, that are named.
const NAMES_MAX: usize = 8;

/// Tests everything once, and then what changes, until a signal ends the process.
pub(super) async fn run(command: &Watch, settings: &runtime::Settings) -> anyhow::Result<()> {
    check(command)?;
    let engine = Arc::new(Engine::new(settings)?);
    let (mut watch, found) = Watched::start(&command.paths, command.filter.as_deref(), &engine);
    let rules = Rules { exact: command.exact, ..Rules::default() };
    let session = Session { engine, rules };
    session.test(&mut watch, &found, Detail::Quiet)?;
    say("Watching for changes: Ctrl-C ends it")?;
    let mut pause = INTERVAL;
    loop {
        sleep(pause).await;
        let start = Instant::now();
        if watch.has_changed() {
            settle(&mut watch).await;
            let found = watch.read(&session.engine);
            session.test(&mut watch, &found, Detail::Normal)?;
        }
        pause = (start.elapsed() * REST).clamp(INTERVAL, INTERVAL_MAX);
    }
}

/// Refuses what can never be watched: a file that is named must be there.
fn check(command: &Watch) -> Result<(), BadInput> {
    for path in &command.paths {
        if is_stdin(path) {
            return Err(BadInput::Request("standard input cannot be watched: name a file".to_owned()));
        }
        fs::metadata(path).map_err(|source| BadInput::File { file: path.display().to_string(), source })?;
    }
    Ok(())
}

/// Waits until nothing has changed for a moment, but not forever.
async fn settle(watch: &mut Watched) {
    for _ in 0..SETTLE_LOOKS_MAX {
        sleep(SETTLE).await;
        if !watch.has_changed() {
            return;
        }
    }
}

struct Session {
    engine: Arc<Engine>,
    rules: Rules,
}

impl Session {
    fn test(&self, watch: &mut Watched, found: &Found, detail: Detail) -> anyhow::Result<()> {
        let start = Instant::now();
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let totals = workbench::run(&self.engine, &found.codecs, self.rules, jobs, |report: &CodecReport| {
            watch.ran(report);
            let text = report.text(detail);
            if text.is_empty() { Ok(()) } else { say(coloured(text.trim_end())) }
        })?;
        for problem in &found.problems {
            warn(format_args!("not valid: {}", sanitize(&problem.describe())))?;
        }
        say(coloured(&verdict(watch, &totals, start.elapsed())))
    }
}

/// Summarizes this run, and names everything watched that still fails or is not valid.
fn verdict(watch: &Watched, totals: &Totals, elapsed: Duration) -> String {
    let Totals { codecs, examples, failed, .. } = totals;
    let (failing, not_valid) = (watch.failing(), watch.not_valid());
    let word = match (failing.is_empty(), not_valid.is_empty()) {
        (false, _) => "FAILED",
        (true, false) => "INVALID",
        (true, true) => "PASSED",
    };
    let mut text = format!(
        "{word}  {}, {}, {failed} failed, {} ms",
        counted(*codecs, "codec"),
        counted(*examples, "example"),
        elapsed.as_millis()
    );
    for (what, names) in [("codecs that fail", failing), ("not valid", not_valid.iter().map(String::as_str).collect())]
    {
        if !names.is_empty() {
            let more = if names.len() > NAMES_MAX { ", …" } else { "" };
            let names: Vec<_> = names.into_iter().take(NAMES_MAX).map(sanitize).collect();
            text += &format!("; {what}: {}{more}", names.join(", "));
        }
    }
    text
}
