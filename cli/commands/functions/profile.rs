//! `airlock functions profile`: what each line of a function costs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use runtime::{Engine, Recording};
use types::Clock;
use workbench::{BadInput, Profile as Report, is_stdin};

use super::args::{
    Profile,
    message::{call, load, sources, to_error},
};
use crate::terminal::{json_lines, say, warn};

/// Runs the message and reports what its lines cost, also if it fails.
pub(super) fn run(command: &Profile, settings: &runtime::Settings, clock: &dyn Clock) -> anyhow::Result<()> {
    if command.files().filter(|file| is_stdin(file)).count() > 1 {
        let reason = "`--svg -` and `--speedscope -` would be mixed: name a file for one of them";
        return Err(BadInput::Request(reason.to_owned()).into());
    }
    let sources = sources(&command.file, &command.message)?;
    let engine = Engine::profiling(settings)?;
    let functions = load(&engine, &sources)?;
    let mut sandbox = engine.sandbox();
    let steps = sandbox.steps(&functions).map_err(|failure| to_error(&failure, &sources))?;
    let (outcome, recording) =
        sandbox.call_recorded(&functions, &call(&command.message, clock)?, Recording::new(&steps));
    if let Some(recording) = recording {
        command.report(&Report::new(&recording, &sources))?;
    }
    outcome.result.map(drop).map_err(|failure| to_error(&failure, &sources))
}

impl Profile {
    fn files(&self) -> impl Iterator<Item = &Path> {
        self.svg.iter().chain(&self.speedscope).map(PathBuf::as_path)
    }

    fn report(&self, report: &Report) -> anyhow::Result<()> {
        if !self.files().any(is_stdin) {
            say(if self.json { json_lines(report, true)? } else { report.listing(self.all_lines) }.trim_end())?;
        }
        if let Some(file) = &self.svg {
            write(file, &report.flame_graph())?;
        }
        if let Some(file) = &self.speedscope {
            let name = self.file.file_name().unwrap_or_default().to_string_lossy();
            write(file, &json_lines(&report.speedscope(&name), false)?)?;
        }
        Ok(())
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if is_stdin(file) {
        return say(text.trim_end());
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    warn(format_args!("wrote {}", file.display()))
}
