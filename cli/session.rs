//! What a person's commands remember between calls: the login and the selected application.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use types::{AppId, Secret, Timestamp, Username};

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
}

/// The application that commands mean when they name none.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// Its id.
    pub(crate) app_id: AppId,
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
        match fs::remove_file(self.folder.join("login.json")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context("cannot forget the login"),
        }
    }

    /// The selected application, if there is one.
    pub(crate) fn selection(&self) -> anyhow::Result<Option<AppId>> {
        Ok(self.read::<Selection>("selection.json")?.map(|selection| selection.app_id))
    }

    /// Selects an application.
    pub(crate) fn select(&self, app_id: AppId) -> anyhow::Result<()> {
        self.write("selection.json", &Selection { app_id })
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

    /// Writes beside the file and renames, so that a reader sees all of it or nothing.
    fn write(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let (path, new) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let write = || -> io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(value)?)?;
            fs::rename(&new, &path)
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
        files.select("my-app".parse().unwrap()).unwrap();
        fs::write(folder.path().join("client/selection.json"), "{").unwrap();
        assert!(format!("{:#}", files.selection().unwrap_err()).contains("remove it"));
    }
}
