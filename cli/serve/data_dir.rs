//! The folder where the services keep everything, and what lies in it.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use server::private_file::write_private;
use types::Secret;

/// The file of the handler's component token.
const TOKEN: &str = "handler.token";

/// A folder that only its owner may read.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, and makes it when it is not there.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot make the data folder {}: set another one with --data", path.display()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the embedded store.
    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("airlock.redb")
    }

    /// Where commands ask for the embedded store while a server holds it.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("airlock.sock")
    }

    /// The file of the key that seals the account service's secrets.
    ///
    /// It lies outside the store, so that a copy of the store alone gives no secret away.
    pub(crate) fn seal(&self) -> PathBuf {
        self.path.join("account.key")
    }

    /// The file of the key that seals the handler's secrets: the keys of devices.
    pub(crate) fn handler_seal(&self) -> PathBuf {
        self.path.join("handler.key")
    }

    /// The file of the handler's key pair, by which brokers will know it.
    pub(crate) fn identity(&self) -> PathBuf {
        self.path.join("handler.pem")
    }

    /// Keeps the certificate where this user's commands look for it.
    pub(crate) fn trust(&self, certificate: &str) -> anyhow::Result<()> {
        self.write("ca.cert", certificate.as_bytes())
    }

    /// Keeps the token with which the handler announces itself, for one that runs in another process.
    pub(crate) fn give_token(&self, token: &Secret) -> anyhow::Result<()> {
        self.write(TOKEN, token.expose().as_bytes())
    }

    /// The token that an account service left here, if one did.
    pub(crate) fn token(&self) -> anyhow::Result<Option<Secret>> {
        let path = self.path.join(TOKEN);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path.join(name);
        write_private(&path, bytes)
            .with_context(|| format!("cannot write {}: make the folder writable, or set --data", path.display()))
    }
}
