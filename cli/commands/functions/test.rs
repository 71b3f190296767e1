//! `airlock functions test`, also called `check`.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use runtime::Engine;
use workbench::{
    BadInput, Codec, CodecReport, Detail, Engines, Format, Found, PendingFile, Reporter, Rules, Totals, Updates,
    counted, is_stdin, truncate,
};

use super::{
    args::{ReportFile, Test, values::percent},
    output::{
        colour::Coloured,
        problems::{complain, end_beside},
    },
};

/// Maximum number of names in the note about unknown members.
const UNKNOWN_MEMBERS_MAX: usize = 40;

pub(super) fn run(command: &Test, settings: &runtime::Settings) -> anyhow::Result<()> {
    if command.update && command.paths.iter().any(|path| is_stdin(path)) {
        return Err(BadInput::Request("`--update` writes into files: name one instead of `-`".to_owned()).into());
    }
    check_coverage_value(command)?;
    let mut reports = Reports::new(command)?;
    let engine = Arc::new(Engine::new(settings)?);
    let counting = command.coverage.map(|_| Engine::profiling(settings)).transpose()?.map(Arc::new);
    let mut found = workbench::find(&command.paths, command.filter.as_deref(), &engine);
    refuse_sources(&command.report, &found, &command.paths)?;
    if !command.quiet {
        note_unknown_members(&found.codecs);
    }
    let jobs = command.jobs.map(usize::from);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let rules = Rules { exact: command.exact, all: command.all };
    let mut updates = Updates::default();
    let engines = Engines { plain: &engine, counting: counting.as_ref() };
    let mut totals = workbench::run_on(engines, &found.codecs, rules, jobs, |report| {
        if command.update {
            updates.add(report);
        }
        reports.add(report)
    })?;
    let written = updates.write();
    found.problems.extend(written.problems);
    totals.coverage_min = command.coverage;
    reports.end(&totals, &found.problems)?;
    if command.update {
        complain(&format!("updated {} in {}", counted(written.examples, "example"), counted(written.files, "file")));
        if written.left > 0 {
            complain(&format!("examples not yet as expected: {}", written.left));
            written.reasons.iter().for_each(|(reason, count)| complain(&format!("{count}: {reason}")));
        }
    }
    end_beside(found.codecs.len(), found.problems)?;
    // What was updated is as expected from now on.
    let failed = if command.update { written.left } else { totals.failed };
    match failed + totals.codecs_not_loaded {
        0 => totals.lack_of_coverage().map_or(Ok(()), |lack| bail!(lack)),
        _ => bail!("{} of {} codecs failed", totals.codecs_failed, totals.codecs),
    }
}

/// Without `=`, a percentage would be taken for a path.
fn check_coverage_value(command: &Test) -> Result<(), BadInput> {
    let is_value = |path: &&PathBuf| path.to_str().is_some_and(|text| percent(text).is_ok()) && !path.exists();
    match command.paths.iter().find(is_value) {
        Some(path) if command.coverage.is_some() => {
            let path = path.display();
            Err(BadInput::Request(format!("there is no file {path}: if it is a percentage, write --coverage={path}")))
        }
        _ => Ok(()),
    }
}

/// Refuses to replace what is tested by a report.
fn refuse_sources(reports: &[ReportFile], found: &Found, paths: &[PathBuf]) -> Result<(), BadInput> {
    // One that is not there yet is no source, nor is standard output.
    let files = reports.iter().filter(|report| !is_stdin(&report.path));
    let existing: Vec<(PathBuf, &Path)> =
        files.filter_map(|report| Some((report.path.canonicalize().ok()?, report.path.as_path()))).collect();
    if existing.is_empty() {
        return Ok(());
    }
    let places = found.codecs.iter().flat_map(|codec| &codec.examples).filter_map(|example| example.place.as_ref());
    let files: BTreeSet<&Path> = places
        .map(|place| place.file.as_path())
        .chain(found.codecs.iter().filter_map(|codec| codec.script_file.as_deref()))
        .chain(found.problems.iter().filter_map(|problem| problem.place().map(|(file, _)| Path::new(file))))
        .chain(paths.iter().map(PathBuf::as_path))
        .collect();
    let sources: BTreeSet<PathBuf> = files.into_iter().filter_map(|file| file.canonicalize().ok()).collect();
    match existing.iter().find(|(path, _)| sources.contains(path)) {
        Some((_, given)) => {
            let reason = format!("{} is tested: name another file for the report", given.display());
            Err(BadInput::Request(reason))
        }
        None => Ok(()),
    }
}

/// The reports of a run: one is printed, the others are files, which are replaced once they are complete.
struct Reports {
    printed: (Box<dyn Reporter>, Box<dyn Write>),
    files: Vec<FileReport>,
}

struct FileReport {
    reporter: Box<dyn Reporter>,
    out: BufWriter<PendingFile>,
    path: PathBuf,
}

impl Reports {
    fn new(command: &Test) -> anyhow::Result<Self> {
        let detail = match (command.quiet, command.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Normal,
        };
        let format = if command.json { Format::Json } else { command.format };
        let reporter = format.reporter(detail);
        let printed: (Box<dyn Reporter>, Box<dyn Write>) = match format {
            // Another one has its place.
            _ if command.report.iter().any(|report| is_stdin(&report.path)) => (reporter, Box::new(io::sink())),
            Format::Human => (Box::new(Coloured(reporter)), Box::new(anstream::stdout())),
            _ => (reporter, Box::new(io::stdout())),
        };
        let mut files: Vec<FileReport> = Vec::new();
        for ReportFile { format, path } in &command.report {
            if files.iter().any(|file| file.path == *path) {
                return Err(BadInput::Request(format!("{} is named for two reports", path.display())).into());
            }
            let file = PendingFile::create(path).map_err(|source| unwritable(path, source))?;
            let (reporter, out) = (format.reporter(detail), BufWriter::new(file));
            files.push(FileReport { reporter, out, path: path.clone() });
        }
        Ok(Self { printed, files })
    }

    /// Adds a codec, and flushes what is printed because the next one may take a while.
    fn add(&mut self, report: &CodecReport) -> anyhow::Result<()> {
        write(&mut self.printed.1, &self.printed.0.codec(report))?;
        for FileReport { reporter, out, path } in &mut self.files {
            out.write_all(reporter.codec(report).as_bytes()).map_err(|source| unwritable(path, source))?;
        }
        Ok(())
    }

    fn end(mut self, totals: &Totals, problems: &[BadInput]) -> anyhow::Result<()> {
        write(&mut self.printed.1, &self.printed.0.end(totals, problems))?;
        for FileReport { mut reporter, mut out, path } in self.files {
            out.write_all(reporter.end(totals, problems).as_bytes()).map_err(|source| unwritable(&path, source))?;
            let file = out.into_inner().map_err(|error| unwritable(&path, error.into_error()))?;
            file.finish().map_err(|source| unwritable(&path, source))?;
        }
        Ok(())
    }
}

fn unwritable(path: &Path, source: io::Error) -> BadInput {
    BadInput::Unwritable { file: path.display().to_string(), source }
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
