//! `airlock functions test`, also called `check`.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufWriter, Write},
    sync::Arc,
};

use anyhow::{Context, bail, ensure};
use runtime::Engine;
use workbench::{
    BadInput, Codec, CodecReport, Detail, Engines, Format, Reporter, Rules, Totals, Updates, is_stdin, truncate,
};

use super::{
    args::{ReportFile, Test},
    colour::Coloured,
    problems::{complain, end},
};

/// Maximum number of names in the note about unknown members.
const UNKNOWN_MEMBERS_MAX: usize = 40;

pub(super) fn run(command: &Test, settings: &runtime::Settings) -> anyhow::Result<()> {
    if command.update && command.paths.iter().any(|path| is_stdin(path)) {
        return Err(BadInput::Nothing("`--update` writes into files: name one instead of `-`".to_owned()).into());
    }
    let mut reports = Reports::new(command)?;
    let engine = Arc::new(Engine::new(settings)?);
    let counting = command.coverage.map(|_| Engine::profiling(settings)).transpose()?.map(Arc::new);
    let mut found = workbench::find(&command.paths, command.filter.as_deref(), &engine);
    if !command.quiet {
        note_unknown_members(&found.codecs);
    }
    let jobs = command.jobs.map(usize::from);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let rules = Rules { exact: command.exact, all: command.all };
    let mut updates = Updates::default();
    let engines = Engines { plain: &engine, counting: counting.as_ref() };
    let totals = workbench::run_on(engines, &found.codecs, rules, jobs, |report| {
        if command.update {
            updates.add(report);
        }
        reports.add(report)
    })?;
    let written = updates.write();
    found.problems.extend(written.problems);
    reports.end(&totals, &found.problems)?;
    if command.update {
        complain(&format!("updated {} examples in {} files", written.examples, written.files));
        if written.left > 0 {
            complain(&format!("{} examples are not as expected yet: run this once more, or mend them", written.left));
        }
    }
    end(found.problems)?;
    // What was updated is as expected from now on.
    let failed = if command.update { written.left } else { totals.failed };
    match failed + totals.codecs_not_loaded {
        0 => command.coverage.map_or(Ok(()), |min| check_coverage(min, &totals)),
        _ => bail!("{} of {} codecs failed", totals.codecs_failed, totals.codecs),
    }
}

fn check_coverage(min: f64, totals: &Totals) -> anyhow::Result<()> {
    let coverage = totals.coverage.as_ref().context("the coverage could not be counted")?;
    ensure!(coverage.uncounted == 0, "the coverage of {} codecs could not be counted", coverage.uncounted);
    let (lines, branches) = (coverage.lines_percent, coverage.branches_percent);
    ensure!(
        lines >= min && branches >= min,
        "examples reach {lines:.1}% of lines and {branches:.1}% of branches, less than {min}%"
    );
    Ok(())
}

/// The reports of a run: one is printed, the others are files.
struct Reports(Vec<(Box<dyn Reporter>, Box<dyn Write>)>);

impl Reports {
    fn new(command: &Test) -> anyhow::Result<Self> {
        let detail = match (command.quiet, command.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Normal,
        };
        let format = if command.json { Format::Json } else { command.format };
        let printed = format.reporter(detail);
        let mut reports: Vec<(Box<dyn Reporter>, Box<dyn Write>)> = vec![match format {
            Format::Human => (Box::new(Coloured(printed)), Box::new(anstream::stdout())),
            _ => (printed, Box::new(io::stdout())),
        }];
        for ReportFile { format, path } in &command.report {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            reports.push((format.reporter(detail), Box::new(BufWriter::new(file))));
        }
        Ok(Self(reports))
    }

    /// Adds a codec, and flushes what is printed because the next one may take a while.
    fn add(&mut self, report: &CodecReport) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|(reporter, out)| write(out, &reporter.codec(report)))
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> anyhow::Result<()> {
        self.0.iter_mut().try_for_each(|(reporter, out)| write(out, &reporter.end(totals, problems)))
    }
}

fn write(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

/// Names ignored members on standard error, because one of them may be a mistake.
fn note_unknown_members(codecs: &[Codec]) {
    let names: BTreeSet<&str> = codecs.iter().flat_map(|codec| &codec.unknown_members).map(String::as_str).collect();
    if !names.is_empty() {
        let names: Vec<String> = names.into_iter().take(UNKNOWN_MEMBERS_MAX).map(truncate).collect();
        complain(&format!("note: ignored unknown members: {}", names.join(", ")));
    }
}
