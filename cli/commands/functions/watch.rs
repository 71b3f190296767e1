//! `airlock functions watch`: tests codecs again when they are saved.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use runtime::Engine;
use tokio::time::sleep;
use workbench::{CodecReport, Detail, Found, Rules, Totals, Watch as Watched, is_stdin};

use super::{args::Watch, colour::coloured};
use crate::terminal::{sanitize, say, warn};

/// How long between two looks: as short as makes a verdict feel immediate, and longer where looking takes long, so that
/// it takes at most a fifth of one processor.
const INTERVAL: Duration = Duration::from_millis(25);
const INTERVAL_MAX: Duration = Duration::from_millis(500);
const REST: u32 = 4;
/// How long nothing must change before files are read: some editors first empty a file and then write it.
const SETTLE: Duration = Duration::from_millis(10);
const SETTLE_LOOKS_MAX: usize = 20;
/// How many codecs that still fail are named.
const FAILING_MAX: usize = 8;

/// Tests everything once, and then what changes, until a signal ends the process.
pub(super) async fn run(command: &Watch, settings: &runtime::Settings) -> anyhow::Result<()> {
    ensure!(!command.paths.iter().any(|path| is_stdin(path)), "standard input cannot be watched: name a file");
    let engine = Arc::new(Engine::new(settings)?);
    let (mut watch, found) = Watched::start(&command.paths, command.filter.as_deref(), &engine);
    let rules = Rules { exact: command.exact, ..Rules::default() };
    let mut session = Session { engine, rules, failing: BTreeSet::new() };
    session.test(&watch, &found, Detail::Quiet)?;
    say("Watching for changes: Ctrl-C ends it")?;
    let mut pause = INTERVAL;
    loop {
        sleep(pause).await;
        let start = Instant::now();
        if watch.has_changed() {
            settle(&mut watch).await;
            let found = watch.read(&session.engine);
            session.test(&watch, &found, Detail::Normal)?;
        }
        pause = (start.elapsed() * REST).clamp(INTERVAL, INTERVAL_MAX);
    }
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
    /// The ids of codecs that failed when they last ran.
    failing: BTreeSet<String>,
}

impl Session {
    fn test(&mut self, watch: &Watched, found: &Found, detail: Detail) -> anyhow::Result<()> {
        let start = Instant::now();
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let failing = &mut self.failing;
        let totals = workbench::run(&self.engine, &found.codecs, self.rules, jobs, |report: &CodecReport| {
            match report.has_failed() {
                true => failing.insert(report.id.clone()),
                false => failing.remove(&report.id),
            };
            let text = report.text(detail);
            if text.is_empty() { Ok(()) } else { say(coloured(text.trim_end())) }
        })?;
        failing.retain(|id| watch.knows(id));
        for problem in &found.problems {
            warn(format_args!("not valid: {}", sanitize(&problem.describe())))?;
        }
        say(coloured(&self.verdict(&totals, found.problems.len(), start.elapsed())))
    }

    fn verdict(&self, totals: &Totals, problems: usize, elapsed: Duration) -> String {
        let Totals { codecs, examples, failed, .. } = totals;
        let time = elapsed.as_millis();
        let ran = format!("{codecs} codecs, {examples} examples, {failed} failed, {time} ms");
        match (self.failing.len(), problems) {
            (0, 0) => format!("PASSED  {ran}"),
            (0, _) => format!("INVALID  {ran}"),
            (count, _) => {
                let names: Vec<_> = self.failing.iter().take(FAILING_MAX).map(|id| sanitize(id)).collect();
                let more = if count > FAILING_MAX { ", …" } else { "" };
                format!("FAILED  {ran}; codecs that fail: {}{more}", names.join(", "))
            }
        }
    }
}
