//! The data directory of the services, and the files in it.

pub(super) mod operator_socket;
pub(super) mod usage_socket;

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use server::private_file::write_private;
use types::{Secret, Timestamp};

/// The file with the certificate that commands trust.
const CERTIFICATE: &str = "ca.cert";
/// The file with the handler's component token.
const HANDLER_TOKEN: &str = "handler.token";

/// A directory that only its owner may read.
#[derive(Clone)]
pub(super) struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// Opens the directory; creates it if it does not exist.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| {
            format!("cannot create the data directory {}: choose another one with --data", path.display())
        })?;
        Ok(Self { path: path.to_owned() })
    }

    /// The directory, whether or not it exists.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the embedded store.
    pub(super) fn store(&self) -> PathBuf {
        self.path.join("airlock.redb")
    }

    /// Returns the path to which a backup moves the store that it replaces at this time.
    pub(super) fn replaced_store(&self, now: Timestamp) -> PathBuf {
        self.path.join(format!("airlock-{}.redb", until(now)))
    }

    /// The mark by which a store that went back is noticed. It is not part of the store, and should not be restored
    /// with it.
    pub(super) fn store_mark(&self) -> PathBuf {
        self.path.join("store.mark")
    }

    /// The socket through which commands use the embedded store while a server has it open.
    pub(super) fn store_socket(&self) -> PathBuf {
        self.path.join("airlock.sock")
    }

    /// The socket through which `airlock account usage` asks the process that serves on this directory.
    pub(super) fn usage_socket(&self) -> PathBuf {
        self.path.join("usage.sock")
    }

    /// The key file that seals the account service's secrets.
    ///
    /// It is not part of the store, so a copy of the store alone reveals no secret.
    pub(super) fn account_key(&self) -> PathBuf {
        self.path.join("account.key")
    }

    /// The key file that seals the handler's secrets, which are the keys of devices.
    pub(super) fn handler_key(&self) -> PathBuf {
        self.path.join("handler.key")
    }

    /// The key file that seals the console's cookies. Without it, everybody has to log in again, and nothing else is
    /// lost.
    pub(super) fn console_key(&self) -> PathBuf {
        self.path.join("console.key")
    }

    /// The handler's own key pair; its public half is announced.
    pub(super) fn handler_identity(&self) -> PathBuf {
        self.path.join("handler.pem")
    }

    /// Writes the certificate to where this user's commands look for one to trust, unless it is there, so that a start
    /// needs no room on a full disk.
    pub(super) fn write_trusted_certificate(&self, certificate: &str) -> anyhow::Result<()> {
        let is_there = fs::read(self.path.join(CERTIFICATE)).is_ok_and(|kept| kept == certificate.as_bytes());
        if is_there { Ok(()) } else { self.write(CERTIFICATE, certificate.as_bytes()) }
    }

    /// Writes the token that a handler in another process announces itself with.
    pub(super) fn write_handler_token(&self, token: &Secret) -> anyhow::Result<()> {
        self.write(HANDLER_TOKEN, token.expose().as_bytes())
    }

    /// The token that an account service, or this handler when it renewed it, wrote here; none if there is none.
    pub(super) fn handler_token(&self) -> anyhow::Result<Option<Secret>> {
        let path = self.path.join(HANDLER_TOKEN);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path.join(name);
        write_private(&path, bytes)
            .with_context(|| format!("cannot write {}: make the directory writable, or set --data", path.display()))
    }
}

/// Returns the suffix of the name of something that a backup replaces at this time.
pub(super) fn until(now: Timestamp) -> String {
    let digits: String = now.to_rfc3339_millis().chars().filter(char::is_ascii_digit).collect();
    format!("until-{digits}")
}
