//! `airlock functions port`: a codec for another network, with a proof.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::Args;
use runtime::Engine;
use workbench::{BadInput, Codec, Finding, Ported, Target, is_stdin};

use super::{lint::target, output::problems::end};
use crate::terminal::{sanitize, warn};

#[derive(Debug, Args)]
pub(crate) struct Port {
    /// File with the codec; its examples are found beside it, as by `functions test`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Network to port to, as in `functions lint`
    #[arg(long = "to", value_name = "TARGET", value_parser = target)]
    target: Target,
    /// File for the new text; `-` is standard output, which is the default
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the text for the target, unless something speaks against it.
pub(super) fn run(command: &Port, settings: &runtime::Settings) -> anyhow::Result<()> {
    if is_stdin(&command.file) {
        return Err(BadInput::Request("examples are found beside a file: name one instead of `-`".to_owned()).into());
    }
    let engine = Arc::new(Engine::new(settings)?);
    let found = workbench::find(std::slice::from_ref(&command.file), None, &engine);
    end(found.problems)?;
    same_script(&found.codecs)?;
    let ported = workbench::port(&engine, &found.codecs, command.target);
    ported.changes.iter().try_for_each(|change| warn(sanitize(change)))?;
    ported.obstacles.iter().chain(&ported.differences).try_for_each(|finding| warn(line(finding)))?;
    let title = command.target.title();
    if !ported.is_sound() {
        let Ported { compared, agreed, .. } = ported;
        bail!(
            "nothing was written: {}",
            match ported.obstacles.len() {
                0 => format!("examples that differ for {title}: {} of {compared}", compared - agreed),
                1 => format!("1 thing keeps it from running on {title}, and port does not rewrite that"),
                count => format!("{count} things keep it from running on {title}, and port does not rewrite those"),
            }
        );
    }
    write(command, &ported.text)?;
    warn(proof(&ported, title))
}

/// A file may have several scripts, and each is ported by itself.
fn same_script(codecs: &[Codec]) -> anyhow::Result<()> {
    match codecs.split_first() {
        Some((first, others)) if others.iter().any(|other| other.script != first.script) => {
            bail!("this file has several codecs: name the script of one")
        }
        _ => Ok(()),
    }
}

fn proof(ported: &Ported, title: &str) -> String {
    let Ported { examples, compared, .. } = ported;
    match (examples, compared) {
        (0, _) => "nothing was proved: the codec has no examples".to_owned(),
        (_, 0) => format!("nothing was proved: no example can be run for {title}"),
        (examples, compared) if examples > compared => {
            format!("examples that agree: {compared}; that say nothing about {title}: {}", examples - compared)
        }
        _ => format!("examples that agree: {compared} of {compared}"),
    }
}

fn line(finding: &Finding) -> String {
    let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    sanitize(&format!("{line}{} ({})", finding.message, finding.rule.name()))
}

fn write(command: &Port, text: &str) -> anyhow::Result<()> {
    match command.output.as_ref().filter(|file| !is_stdin(file)) {
        Some(file) => {
            let unwritable = |source| BadInput::Unwritable { file: file.display().to_string(), source };
            Ok(fs::write(file, text).map_err(unwritable)?)
        }
        None => io::stdout().write_all(text.as_bytes()).context("cannot write the text"),
    }
}
