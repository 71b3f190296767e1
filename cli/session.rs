//! What a person's commands remember between calls: the login and the selected application.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use api::rest::account::TokenAnswer;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use server::private_file::write_private;
use types::{AppEui, AppId, Clock, Secret, Timestamp, Username};

/// The files of a person, readable by nobody else.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

/// A login.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Login {
    /// The account service that gave the token.
    pub(crate) auth_server: String,
    /// Who logged in.
    pub(crate) username: Username,
    /// The token.
    pub(crate) access_token: Secret,
    /// When the token ends.
    pub(crate) expires: Timestamp,
    /// What the next token is asked with.
    #[serde(default)]
    pub(crate) refresh_token: Option<Secret>,
}

/// A login that waits for its code.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The account service that gives the code.
    pub(crate) auth_server: String,
    /// What proves that it was this program who asked for the code.
    pub(crate) verifier: Secret,
}

/// The application that commands mean when they name none.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// Its id.
    pub(crate) app_id: AppId,
    /// The EUI that its devices get, unless that is its first one.
    #[serde(default)]
    pub(crate) app_eui: Option<AppEui>,
}

impl Login {
    /// What an answer of the account service gives.
    pub(crate) fn new(auth_server: &str, username: Username, answer: TokenAnswer, clock: &dyn Clock) -> Self {
        Self {
            auth_server: auth_server.to_owned(),
            username,
            access_token: answer.access_token,
            expires: clock.now().plus(Duration::from_secs(answer.expires_in)),
            refresh_token: answer.refresh_token,
        }
    }
}

impl Files {
    /// The files below `data_dir`.
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.join("client") }
    }

    /// The login, if there is one.
    pub(crate) fn login(&self) -> anyhow::Result<Option<Login>> {
        self.read("login.json")
    }

    /// Remembers a login.
    pub(crate) fn set_login(&self, login: &Login) -> anyhow::Result<()> {
        self.write("login.json", login)
    }

    /// Forgets the login; says whether there was one.
    pub(crate) fn remove_login(&self) -> anyhow::Result<bool> {
        self.remove("login.json").context("cannot forget the login")
    }

    /// Forgets that a login waits for its code.
    pub(crate) fn remove_begun(&self) -> anyhow::Result<bool> {
        self.remove("begun.json").context("cannot forget that a login was begun")
    }

    /// Forgets which application is selected.
    pub(crate) fn unselect(&self) -> anyhow::Result<bool> {
        self.remove("selection.json").context("cannot forget the selected application")
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.folder.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The login that waits for its code, if there is one.
    pub(crate) fn begun(&self) -> anyhow::Result<Option<Begun>> {
        self.read("begun.json")
    }

    /// Remembers that a login waits for its code.
    pub(crate) fn set_begun(&self, begun: &Begun) -> anyhow::Result<()> {
        self.write("begun.json", begun)
    }

    /// The selected application, if there is one.
    pub(crate) fn selection(&self) -> anyhow::Result<Option<Selection>> {
        self.read("selection.json")
    }

    /// Selects an application.
    pub(crate) fn select(&self, selection: &Selection) -> anyhow::Result<()> {
        self.write("selection.json", selection)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{} is damaged: remove it and log in again", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        let write = || -> io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            write_private(&path, &serde_json::to_vec_pretty(value)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_login_is_kept_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path());
        assert!(files.login().unwrap().is_none());
        let login = Login {
            auth_server: "http://localhost:8000".into(),
            username: "alice".parse().unwrap(),
            access_token: Secret::new("hush"),
            expires: Timestamp::from_millis(1),
            refresh_token: None,
        };
        files.set_login(&login).unwrap();
        let mode = fs::metadata(folder.path().join("client/login.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(files.login().unwrap().unwrap().access_token, Secret::new("hush"));
        assert!(files.remove_login().unwrap());
        assert!(!files.remove_login().unwrap());
    }

    #[test]
    fn a_damaged_file_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path());
        files.select(&Selection { app_id: "my-app".parse().unwrap(), app_eui: None }).unwrap();
        fs::write(folder.path().join("client/selection.json"), "{").unwrap();
        assert!(format!("{:#}", files.selection().unwrap_err()).contains("remove it"));
    }
}
