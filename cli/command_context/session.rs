//! Files that commands of one person share: their login and the selected application.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use api::rest::account::TokenResponse;
use client::account::ClientCredentials;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use server::private_file::write_private;
use types::{AppEui, AppId, Clock, Secret, Timestamp, Username};

const LOGIN: &str = "login.json";
const PENDING_LOGIN: &str = "begun.json";
const SELECTION: &str = "selection.json";

/// A user's files, readable by nobody else.
#[derive(Clone, Debug)]
pub(crate) struct SessionFiles {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Login {
    /// URL of the account service that issued the token.
    pub(crate) auth_server: String,
    pub(crate) username: Username,
    #[serde(default)]
    pub(crate) client: Client,
    pub(crate) access_token: Secret,
    /// Time at which the access token expires.
    pub(crate) expires: Timestamp,
    #[serde(default)]
    pub(crate) refresh_token: Option<Secret>,
}

/// The OAuth client to which a login was issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Client {
    /// This command line.
    #[default]
    #[serde(rename = "airlock")]
    Own,
    /// That of v2, for codes from the account site.
    #[serde(rename = "ttnctl")]
    OfV2,
}

/// A login that waits for its authorization code.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingLogin {
    /// URL of the account service that issues the code.
    pub(crate) auth_server: String,
    /// The PKCE code verifier.
    pub(crate) verifier: Secret,
}

/// The application that commands use by default.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Selection {
    pub(crate) app_id: AppId,
    /// The EUI for its devices; the application's first one if absent.
    #[serde(default)]
    pub(crate) app_eui: Option<AppEui>,
}

impl Client {
    /// Returns the client's credentials for the account service. The secret of v2's command line is known to everybody.
    pub(crate) fn credentials(self) -> anyhow::Result<ClientCredentials> {
        let (id, secret) = match self {
            Self::Own => ("airlock", Secret::default()),
            Self::OfV2 => ("ttnctl", Secret::new("ttnctl")),
        };
        Ok(ClientCredentials { id: id.parse()?, secret })
    }
}

impl Login {
    /// The login that the account service's response describes.
    pub(crate) fn new(
        auth_server: &str,
        (username, client): (Username, Client),
        response: TokenResponse,
        clock: &dyn Clock,
    ) -> Self {
        Self {
            auth_server: auth_server.to_owned(),
            username,
            client,
            access_token: response.access_token,
            expires: clock.now().plus(Duration::from_secs(response.expires_in)),
            refresh_token: response.refresh_token,
        }
    }
}

impl SessionFiles {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { directory: data_dir.join("client") }
    }

    pub(crate) fn login(&self) -> anyhow::Result<Option<Login>> {
        self.read(LOGIN)
    }

    pub(crate) fn set_login(&self, login: &Login) -> anyhow::Result<()> {
        self.write(LOGIN, login)
    }

    pub(crate) fn delete_login(&self) -> anyhow::Result<bool> {
        self.delete(LOGIN)
    }

    pub(crate) fn pending_login(&self) -> anyhow::Result<Option<PendingLogin>> {
        self.read(PENDING_LOGIN)
    }

    pub(crate) fn set_pending_login(&self, pending: &PendingLogin) -> anyhow::Result<()> {
        self.write(PENDING_LOGIN, pending)
    }

    pub(crate) fn delete_pending_login(&self) -> anyhow::Result<()> {
        self.delete(PENDING_LOGIN).map(drop)
    }

    pub(crate) fn selection(&self) -> anyhow::Result<Option<Selection>> {
        self.read(SELECTION)
    }

    pub(crate) fn set_selection(&self, selection: &Selection) -> anyhow::Result<()> {
        self.write(SELECTION, selection)
    }

    pub(crate) fn delete_selection(&self) -> anyhow::Result<()> {
        self.delete(SELECTION).map(drop)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let path = self.directory.join(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .with_context(|| format!("{} is corrupt: remove it and log in again", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let path = self.directory.join(name);
        let write = || -> io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            write_private(&path, &serde_json::to_vec_pretty(value)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns whether the file existed.
    fn delete(&self, name: &str) -> anyhow::Result<bool> {
        let path = self.directory.join(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot remove {}", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_can_read_a_login() {
        let directory = tempfile::tempdir().unwrap();
        let files = SessionFiles::new(directory.path());
        assert!(files.login().unwrap().is_none());
        let login = Login {
            client: Client::default(),
            auth_server: "http://localhost:8000".into(),
            username: "alice".parse().unwrap(),
            access_token: Secret::new("hush"),
            expires: Timestamp::from_millis(1),
            refresh_token: None,
        };
        files.set_login(&login).unwrap();
        let mode = fs::metadata(directory.path().join("client/login.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(files.login().unwrap().unwrap().access_token, Secret::new("hush"));
        assert!(files.delete_login().unwrap());
        assert!(!files.delete_login().unwrap());
    }

    #[test]
    fn the_error_for_a_corrupt_file_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let files = SessionFiles::new(directory.path());
        files.set_selection(&Selection { app_id: "my-app".parse().unwrap(), app_eui: None }).unwrap();
        fs::write(directory.path().join("client/selection.json"), "{").unwrap();
        assert!(format!("{:#}", files.selection().unwrap_err()).contains("remove it"));
    }
}
