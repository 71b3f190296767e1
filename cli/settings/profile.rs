//! Settings files that are chosen by name.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::Context;
use etcetera::{BaseStrategy, choose_base_strategy};
use server::private_file::create_private;

/// The first line of a temporary profile.
const TEMPORARY: &str = "# Written by a command, for as long as it runs.";

/// The name of a settings file in the user's configuration directory: lowercase letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProfileName(String);

/// A profile that exists as long as this value.
pub(crate) struct TemporaryProfile {
    pub(crate) name: ProfileName,
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a profile has lowercase letters, digits and `-` only, 32 at most")]
pub(crate) struct InvalidProfileName;

impl ProfileName {
    /// The settings file.
    pub(crate) fn file(&self) -> anyhow::Result<PathBuf> {
        let dirs = choose_base_strategy().context("cannot find your home directory: set HOME")?;
        Ok(dirs.config_dir().join("airlock").join(format!("{}.toml", self.0)))
    }

    /// Writes the settings file until the profile is dropped, as `name`, or with a number if there is one already.
    pub(crate) fn temporary(name: &str, settings: &str) -> anyhow::Result<TemporaryProfile> {
        for name in [name.to_owned()].into_iter().chain((2..100).map(|number| format!("{name}-{number}"))) {
            let name: Self = name.parse()?;
            let file = name.file()?;
            if let Some(directory) = file.parent() {
                fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
            }
            if is_left_over(&file) {
                _ = fs::remove_file(&file);
            }
            match create_private(&file, format!("{TEMPORARY}\n{settings}").as_bytes()) {
                Ok(()) => return Ok(TemporaryProfile { name, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot write {}", file.display())),
            }
        }
        anyhow::bail!("there are too many profiles named {name}-N: remove those that no demo uses")
    }
}

/// Returns true if a temporary profile belongs to a process that was killed: the data directory that it names is gone.
fn is_left_over(file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let data_dir = text.lines().find_map(|line| line.strip_prefix("data_dir = "));
    let data_dir = data_dir.and_then(|path| serde_json::from_str::<PathBuf>(path).ok());
    text.starts_with(TEMPORARY) && data_dir.is_some_and(|path| matches!(path.try_exists(), Ok(false)))
}

impl std::fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for ProfileName {
    type Err = InvalidProfileName;

    fn from_str(text: &str) -> Result<Self, InvalidProfileName> {
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match (1..=32).contains(&text.len()) && text.bytes().all(is_valid) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidProfileName),
        }
    }
}

impl Drop for TemporaryProfile {
    fn drop(&mut self) {
        // What is left over is removed by the next one.
        _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_no_other_file() {
        for name in ["", "../x", "a/b", "A", "a.toml", &"a".repeat(33)] {
            assert_eq!(name.parse::<ProfileName>(), Err(InvalidProfileName), "{name}");
        }
        assert!("demo-2".parse::<ProfileName>().is_ok());
    }

    #[test]
    fn only_temporary_profiles_without_their_data_are_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let (file, gone) = (dir.path().join("demo.toml"), dir.path().join("gone"));
        for (first, data_dir, expected) in
            [(TEMPORARY, gone.as_path(), true), (TEMPORARY, dir.path(), false), ("# mine", gone.as_path(), false)]
        {
            fs::write(&file, format!("{first}\ndata_dir = {data_dir:?}\n[client]\n")).unwrap();
            assert_eq!(is_left_over(&file), expected, "{first} {data_dir:?}");
        }
        assert!(!is_left_over(&gone));
    }
}
