//! The codecs that a replay runs.

use std::{fmt, path::Path};

use replay::{Codecs, Report};
use runtime::{Engine, Sources};
use serde::Serialize;
use workbench::{BadInput, describe, is_stdin, read_function};

use super::args::{CodecFile, ReplayCommand};
use crate::terminal::sanitize;

/// Number of bytes of a codec's hash in a report.
const HASH_BYTES: usize = 6;
/// Maximum number of codecs, which are in memory at once.
const CODECS_MAX: usize = 500;
/// Maximum number of profiles of uplinks that an error names.
const NAMES_MAX: usize = 20;

/// A codec in a report.
#[derive(Serialize)]
pub(super) struct Codec {
    /// The profile of the devices; none for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// The file.
    file: String,
    /// The beginning of the SHA-256 of the text.
    hash: String,
}

/// Loads the codecs that the arguments name.
pub(super) fn load(command: &ReplayCommand, engine: &Engine) -> anyhow::Result<(Codecs, Vec<Codec>)> {
    refuse_stdin_twice(command)?;
    if command.codec.len() > CODECS_MAX {
        return Err(BadInput::Request(format!("more than {CODECS_MAX} codecs: replay fewer profiles at once")).into());
    }
    let (mut codecs, mut loaded) = (Codecs::default(), Vec::new());
    for CodecFile { profile, file } in &command.codec {
        let sources = Sources { dialect: command.dialect.map(Into::into), ..read(file)? };
        let functions = engine.load(&sources, engine.limits());
        let functions = functions.map_err(|failure| BadInput::Request(describe(&failure, &sources)))?;
        if !codecs.add(profile.as_deref(), functions) {
            let whose = profile.as_ref().map_or("all devices".to_owned(), |profile| format!("the profile {profile}"));
            let reason = format!("there are two codecs for {whose}: name one, or --codec PROFILE=FILE");
            return Err(BadInput::Request(reason).into());
        }
        let hash = hex::encode(&sources.hash().as_bytes()[..HASH_BYTES]);
        loaded.push(Codec { profile: profile.clone(), file: file.display().to_string(), hash });
    }
    Ok((codecs, loaded))
}

/// Names the profiles that have a codec although no uplink has them, and those of the uplinks; none if all are met.
pub(super) fn unmet(codecs: &Codecs, loaded: &[Codec], report: &Report) -> Option<String> {
    let unmet = loaded.iter().filter_map(|codec| codec.profile.as_deref()).filter(|profile| !codecs.has_met(profile));
    let unmet = unmet.map(|profile| format!("`{profile}`")).collect::<Vec<_>>().join(", ");
    let shown = |profile: &String| match profile.is_empty() {
        true => "none".to_owned(),
        // Others have chosen it.
        false => format!("`{}`", sanitize(profile)),
    };
    let names = report.profiles.keys().take(NAMES_MAX).map(shown).collect::<Vec<_>>().join(", ");
    let hint = match names.as_str() {
        // Without uplinks, there is nothing to choose from.
        "" => return None,
        "none" => "the uplinks have no profiles".to_owned(),
        names => format!("the profiles of the uplinks are {names}"),
    };
    (!unmet.is_empty()).then(|| format!("no uplink has the profile {unmet}: check --codec; {hint}"))
}

/// A codec: a file that may define any of the functions.
fn read(file: &Path) -> Result<Sources, BadInput> {
    let name = file.display().to_string();
    let text = read_function(file).map_err(|source| BadInput::File { file: name.clone(), source })?;
    match text.trim().is_empty() {
        true => Err(BadInput::Request(format!("no codec in {name}: the file is empty"))),
        false => Ok(Sources::single_file(text)),
    }
}

fn refuse_stdin_twice(command: &ReplayCommand) -> Result<(), BadInput> {
    let files = command.codec.iter().map(|codec| &codec.file).chain(&command.variables);
    let count = files.filter(|file| is_stdin(file)).count() + usize::from(command.from == "-");
    let reason = "`-` appears twice: standard input can be the uplinks, a codec or the variables";
    if count > 1 { Err(BadInput::Request(reason.to_owned())) } else { Ok(()) }
}

impl fmt::Display for Codec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.file, self.hash)?;
        self.profile.as_ref().map_or(Ok(()), |profile| write!(out, " for {profile}"))
    }
}
