//! `airlock functions lint`: on which networks codecs run.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::Args;
use runtime::Engine;
use workbench::{LintFormat, LintTotals, Target};

use super::output::{colour::coloured, problems::end_beside};

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Files and directories with codecs, found as by `functions test`; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Network for which to judge, and that all codecs must run on; can be repeated [default: all, as a report]
    #[arg(long = "target", value_name = "NAME", value_parser = target)]
    targets: Vec<Target>,
    /// Judge only codecs whose id contains this text, as in vendor/model
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Format of the output: human, json, markdown, github or sarif
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = format)]
    format: LintFormat,
    /// Codecs to judge in parallel [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

/// Judges codecs, and fails if one does not run on a target that was named.
pub(super) fn run(command: &Lint, settings: &runtime::Settings) -> anyhow::Result<()> {
    let engine = Arc::new(Engine::new(settings)?);
    let found = workbench::find(&command.paths, command.filter.as_deref(), &engine);
    let jobs = command.jobs.map(usize::from);
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let targets = if command.targets.is_empty() { &Target::ALL[..] } else { &command.targets };
    let (mut totals, mut reporter) = (LintTotals::default(), command.format.reporter());
    let show = |text: &str| match command.format {
        LintFormat::Human => print(&mut anstream::stdout(), &coloured(text)),
        _ => print(&mut io::stdout(), text),
    };
    workbench::lint(&engine, &found.codecs, targets, jobs, |report| {
        totals.add(report);
        show(&reporter.codec(report))
    })?;
    show(&reporter.end(&totals, &found.problems))?;
    end_beside(found.codecs.len(), found.problems)?;
    match totals.codecs_failed {
        failed @ 1.. if !command.targets.is_empty() => {
            bail!("codecs that do not run on every target: {failed} of {}", totals.codecs)
        }
        _ => Ok(()),
    }
}

fn print(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}

/// A target by its name.
pub(super) fn target(name: &str) -> Result<Target, String> {
    let names = || Target::ALL.map(Target::name).join(", ");
    Target::from_name(name).ok_or_else(|| format!("there is no target `{name}`: use one of {}", names()))
}

fn format(name: &str) -> Result<LintFormat, String> {
    let names = || LintFormat::ALL.map(LintFormat::name).join(", ");
    let found = LintFormat::ALL.into_iter().find(|format| format.name() == name);
    found.ok_or_else(|| format!("there is no format `{name}`: use one of {}", names()))
}
