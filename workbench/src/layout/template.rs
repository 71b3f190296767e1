//! Writes a new codec: commented functions, examples that pass, and the file that tests them in CI.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{self, Path, PathBuf},
    str::FromStr,
};

use runtime::Dialect;

use super::BadInput;
use crate::file::normal;

/// Where the file that tests codecs in CI is, from the top of a repository.
pub(crate) const CI_FILE: &str = ".github/workflows/codecs.yml";
pub(crate) const CI: &str = include_str!("template/codecs.yml");
/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 64;

/// The name of a codec, which its files have too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecName(String);

impl FromStr for CodecName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        match name.len() <= NAME_CHARS_MAX && starts_well && name.chars().all(is_valid) && !name.ends_with(".js") {
            true => Ok(Self(name.to_owned())),
            false => Err("a codec's name has letters, digits, `-`, `_` and `.`, as in door-sensor".to_owned()),
        }
    }
}

/// Result of writing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewFile {
    /// It was written.
    Written(PathBuf),
    /// It was there already, and stays as it is.
    Kept(PathBuf),
}

/// Writes the files of a codec into `dir`, and a CI file if there is none. Refuses to overwrite anything.
///
/// The CI file belongs to the Git repository that `dir` is in, because GitHub reads only that at its top; without one, to
/// `top`, or to `dir` if that is elsewhere.
pub fn write_new(dir: &Path, top: &Path, dialect: Dialect, name: &CodecName) -> Result<Vec<NewFile>, BadInput> {
    let (script, examples) = match dialect {
        Dialect::Ts013 => (include_str!("template/ts013.js"), include_str!("template/ts013.test.yaml")),
        Dialect::V2 => (include_str!("template/v2.js"), include_str!("template/v2.test.yaml")),
        Dialect::ChirpStack3 => {
            (include_str!("template/chirpstack3.js"), include_str!("template/chirpstack3.test.yaml"))
        }
    };
    let files =
        [("js", script), ("test.yaml", examples)].map(|(end, text)| (dir.join(format!("{}.{end}", name.0)), text));
    // Checked before anything is written, so that half a codec is not left behind.
    if let Some((file, _)) = files.iter().find(|(file, _)| file.symlink_metadata().is_ok()) {
        return Err(BadInput::Request(format!("{} exists: choose another name", file.display())));
    }
    create_dir(dir)?;
    let mut written = Vec::new();
    for (file, text) in files {
        create(&file, &text.replace("NAME", &name.0)).map_err(|source| unwritable(&file, source))?;
        written.push(NewFile::Written(file));
    }
    let ci = top_of(dir, top).join(CI_FILE);
    ci.parent().map_or(Ok(()), create_dir)?;
    written.push(match create(&ci, CI) {
        Ok(()) => NewFile::Written(ci),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => NewFile::Kept(ci),
        Err(error) => return Err(unwritable(&ci, error)),
    });
    Ok(written)
}

/// The nearest directory above with a Git repository, or else `top` or `dir`.
fn top_of(dir: &Path, top: &Path) -> PathBuf {
    let whole = |path: &Path| path::absolute(path).map_or_else(|_| path.to_owned(), |path| normal(&path));
    let (from, default) = (whole(dir), whole(top));
    match from.ancestors().find(|above| above.join(".git").exists()) {
        Some(found) if found == default => top.to_owned(),
        Some(found) => found.to_owned(),
        None if from.starts_with(default) => top.to_owned(),
        None => dir.to_owned(),
    }
}

fn create_dir(dir: &Path) -> Result<(), BadInput> {
    fs::create_dir_all(dir).map_err(|source| unwritable(dir, source))
}

fn unwritable(file: &Path, source: io::Error) -> BadInput {
    BadInput::Unwritable { file: file.display().to_string(), source }
}

fn create(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for name in ["door-sensor", "th1_v2.1"] {
            assert!(name.parse::<CodecName>().is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "a/b", "a b", "-a", "a.js", "ä"] {
            assert!(name.parse::<CodecName>().is_err(), "{name}");
        }
    }
}
