//! A broker, and how to log in there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use client::{ClientIdentity, Trust};
use rumqttc::Transport;
use types::Secret;

use super::{settings::MqttSettings, url::BrokerUrl};
use crate::Error;

/// A broker, and how to log in there.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: BrokerUrl,
    pub(super) client_id: String,
    login: Option<Login>,
    pub(super) transport: Transport,
}

#[derive(Clone)]
struct Login {
    username: String,
    password: Secret,
    password_file: Option<PathBuf>,
}

impl Endpoint {
    /// Reads the files that the settings name; `table` is where the settings are, for messages.
    pub(crate) fn new(settings: &MqttSettings, table: &str, client_id: String) -> Result<Self, Error> {
        let setting = |name: &str, reason: &str| Error::setting(format!("{table}.{name}"), reason);
        let url = BrokerUrl::parse(&settings.url).map_err(|reason| setting("url", reason))?;
        if !url.is_tls && (settings.ca_certificate.is_some() || settings.certificate.is_some()) {
            return Err(setting("url", "must start with mqtts:// where certificates are set"));
        }
        let transport = if url.is_tls { tls(settings, &setting)? } else { Transport::tcp() };
        Ok(Self { url, client_id, login: login(settings, &setting)?, transport })
    }

    /// The user name and the password, which is read again because it may have been replaced.
    pub(super) fn login(&self) -> Option<(&str, Secret)> {
        let Login { username, password, password_file } = self.login.as_ref()?;
        let read = password_file.as_deref().and_then(|path| read_secret(path).ok());
        Some((username, read.unwrap_or_else(|| password.clone())))
    }
}

fn login(settings: &MqttSettings, setting: &dyn Fn(&str, &str) -> Error) -> Result<Option<Login>, Error> {
    let password_file = settings.password_file.clone();
    match (settings.username.clone(), &password_file) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(setting("username", "must be set where `password_file` is")),
        (Some(username), None) => Ok(Some(Login { username, password: Secret::default(), password_file })),
        (Some(username), Some(path)) => Ok(Some(Login { username, password: read_secret(path)?, password_file })),
    }
}

fn tls(settings: &MqttSettings, setting: &dyn Fn(&str, &str) -> Error) -> Result<Transport, Error> {
    let trust = match &settings.ca_certificate {
        Some(path) => Trust::Certificate(read(path)?),
        None => Trust::System,
    };
    let config = match (&settings.certificate, &settings.key) {
        (None, None) => trust.tls()?,
        (Some(certificate), Some(key)) => trust.tls_with_identity(&ClientIdentity {
            certificate_pem: read(certificate)?,
            key_pem: Secret::new(read(key)?),
        })?,
        _ => return Err(setting("key", "must be set together with `certificate`")),
    };
    Ok(Transport::tls_with_config(config.into()))
}

/// Reads a file that holds one line with a secret. An empty one may be about to be written.
pub(crate) fn read_secret(path: &Path) -> Result<Secret, Error> {
    let text = read(path)?;
    match text.trim() {
        "" => Err(Error::Empty { path: path.to_owned() }),
        secret => Ok(Secret::new(secret)),
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_was_replaced_is_used_for_the_next_connection() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        fs::write(&path, "old\n").unwrap();
        let (username, password_file) = (Some("me".to_owned()), Some(path.clone()));
        let settings =
            MqttSettings { url: "mqtt://localhost".to_owned(), username, password_file, ..Default::default() };
        let endpoint = Endpoint::new(&settings, "test", "id".to_owned()).unwrap();
        for password in ["old", "new"] {
            fs::write(&path, password).unwrap();
            assert_eq!(endpoint.login().unwrap().1.expose(), password);
        }
        // A file that is being replaced is empty, or gone, for a moment.
        fs::write(&path, "\n").unwrap();
        assert_eq!(endpoint.login().unwrap().1.expose(), "old");
        assert!(matches!(Endpoint::new(&settings, "test", "id".to_owned()), Err(Error::Empty { .. })));
        fs::remove_file(&path).unwrap();
        assert_eq!(endpoint.login().unwrap().1.expose(), "old");
    }
}
