//! A broker, and how to log in there.

mod url;

use std::sync::Arc;

use rustls::ClientConfig;
use types::Secret;

pub use self::url::BrokerUrl;
use crate::{CertificateError, Error, Remote, Trust, secret_file::SecretFile};

const PLAIN: (&str, &str) = ("url", "must start with mqtts:// where certificates are set");

/// A broker, and how to log in there.
#[derive(Clone)]
pub struct Endpoint {
    /// The broker's address.
    pub url: BrokerUrl,
    /// The id of this client, under which the broker keeps a session.
    pub client_id: String,
    login: Option<Login>,
    /// None for a connection without TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

#[derive(Clone)]
struct Login {
    username: String,
    password: Option<SecretFile>,
}

impl Endpoint {
    /// Reads the files that the settings name; `table` is where the settings are, for messages.
    pub fn new(settings: &Remote, table: &str, client_id: String) -> Result<Self, Error> {
        let setting = |name: &str, reason: &str| Error::setting(format!("{table}.{name}"), reason);
        let url = BrokerUrl::parse(&settings.url).map_err(|reason| setting("url", reason))?;
        let tls = settings.tls(url.is_tls, PLAIN, &setting)?;
        Ok(Self { url, client_id, login: login(settings, &setting)?, tls })
    }

    /// Like [`Self::new`], with a user and password that do not come from these settings, which must not have any.
    pub fn with_login(
        settings: &Remote,
        table: &str,
        client_id: String,
        (username, password): (&str, SecretFile),
    ) -> Result<Self, Error> {
        if settings.username.is_some() || settings.password_file.is_some() {
            let reason = "must not be set: users are the applications, and passwords their API keys";
            return Err(Error::setting(format!("{table}.username"), reason));
        }
        let login = Some(Login { username: username.to_owned(), password: Some(password) });
        Ok(Self { login, ..Self::new(settings, table, client_id)? })
    }

    /// An endpoint that does not come from settings.
    pub fn with_trust(
        url: BrokerUrl,
        trust: &Trust,
        client_id: String,
        (username, password): (&str, Secret),
    ) -> Result<Self, CertificateError> {
        let tls = if url.is_tls { Some(Arc::new(trust.tls()?)) } else { None };
        let login = Some(Login { username: username.to_owned(), password: Some(SecretFile::given(password)) });
        Ok(Self { url, client_id, login, tls })
    }

    /// Returns the endpoint with another client id.
    pub fn with_client_id(&self, client_id: String) -> Self {
        Self { client_id, ..self.clone() }
    }

    /// The user name and the password, which is read again because it may have been replaced.
    pub(super) fn login(&self) -> Option<(&str, Secret)> {
        let Login { username, password } = self.login.as_ref()?;
        Some((username, password.as_ref().map(SecretFile::current).unwrap_or_default()))
    }
}

fn login(settings: &Remote, setting: &dyn Fn(&str, &str) -> Error) -> Result<Option<Login>, Error> {
    let password = settings.password()?;
    match settings.username.clone() {
        None if password.is_some() => Err(setting("username", "must be set where `password_file` is")),
        username => Ok(username.map(|username| Login { username, password })),
    }
}
