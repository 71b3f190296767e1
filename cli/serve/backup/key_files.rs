//! The key files beside the store, without which its secrets cannot be opened.

use std::{fs, io};

use anyhow::{Context, bail, ensure};
use server::private_file::create_private;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{
    super::data_dir::DataDir,
    file::{KeyFile, KeyFileHash},
};

/// Files by which services are recognized, which a new installation would replace by others.
const IDENTITIES: [&str; 2] = ["handler.pem", "tls.pem"];
/// Files that open secrets in the store: it is useless without them.
const SEALING: [&str; 2] = ["account.key", "handler.key"];

/// The key files that are in the data directory.
pub(super) fn find(data_dir: &DataDir) -> anyhow::Result<Vec<KeyFile>> {
    let names = SEALING.into_iter().chain(IDENTITIES);
    names.filter_map(|name| read(data_dir, name).transpose()).collect()
}

pub(super) fn hash(file: &KeyFile) -> anyhow::Result<KeyFileHash> {
    Ok(KeyFileHash { name: file.name.clone(), sha256: hex::encode(Sha256::digest(&*file.contents()?)) })
}

/// The key files of a backup that the data directory lacks. An error if the store could not be used there.
pub(super) fn missing(
    data_dir: &DataDir,
    hashes: &[KeyFileHash],
    backed_up: Vec<KeyFile>,
) -> anyhow::Result<Vec<KeyFile>> {
    for expected in hashes.iter().filter(|hash| SEALING.contains(&hash.name.as_str())) {
        let (name, directory) = (&expected.name, data_dir.path().display());
        let found = read(data_dir, name)?;
        let backup = backed_up.iter().find(|file| file.name == *name);
        match (found, backup) {
            (Some(found), _) => ensure!(
                hash(&found)? == *expected,
                "{name} in {directory} is not the one of this backup: restore into another directory, or put that one \
                 there"
            ),
            (None, Some(backup)) => ensure!(hash(backup)? == *expected, "{name} in the backup is not the one it names"),
            (None, None) => bail!(
                "the backup was made without {name}, and {directory} has none: put the {name} of that installation there \
                 first"
            ),
        }
    }
    let is_known = |file: &KeyFile| SEALING.into_iter().chain(IDENTITIES).any(|name| name == file.name);
    let is_missing = |file: &KeyFile| is_known(file) && !data_dir.path().join(&file.name).exists();
    Ok(backed_up.into_iter().filter(is_missing).collect())
}

pub(super) fn write(data_dir: &DataDir, files: &[KeyFile]) -> anyhow::Result<()> {
    files.iter().try_for_each(|file| {
        let path = data_dir.path().join(&file.name);
        let written = create_private(&path, &file.contents()?);
        written.with_context(|| format!("cannot write {}", path.display()))
    })
}

fn read(data_dir: &DataDir, name: &str) -> anyhow::Result<Option<KeyFile>> {
    let path = data_dir.path().join(name);
    match fs::read(&path).map(Zeroizing::new) {
        Ok(contents) => Ok(Some(KeyFile::new(name, &contents))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
