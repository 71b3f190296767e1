//! A Redis server, or one node of a cluster, and how to log in there.

use std::path::Path;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisResult, TlsCertificates,
    cluster::{ClusterClient, ClusterClientBuilder},
};

use super::settings::StreamSettings;
use crate::{
    Error,
    mqtt::MqttSettings,
    secret_file::{SecretFile, read},
};

const TLS: &str = "rediss://";
const URL: &str = "must be like redis://host:6379, or rediss:// for TLS";
/// Minimum of the setting. A bridge renews its claims three times as often, each time with a command.
const CLAIM_AFTER_MS_MIN: u64 = 1000;

/// A server, or one node of a cluster, and how to log in there.
#[derive(Clone)]
pub struct Node {
    info: ConnectionInfo,
    password: Option<SecretFile>,
    /// `None` without TLS.
    certificates: Option<TlsCertificates>,
    /// Without a password.
    pub url: String,
}

/// Returns true if the scheme of a URL is `redis` or `rediss`.
pub fn is_redis(url: &str) -> bool {
    url.starts_with("redis://") || url.starts_with(TLS)
}

impl Node {
    /// The server of a stream to read; `table` is where the settings are, for messages.
    pub fn of_stream(settings: &StreamSettings, table: &str) -> Result<Self, Error> {
        if settings.claim_after_ms < CLAIM_AFTER_MS_MIN {
            let reason = "must be at least 1000, or bridges take over what others work on";
            return Err(Error::setting(format!("{table}.claim_after_ms"), reason));
        }
        Self::new(&settings.server(), table)
    }

    /// A server, in settings that may name a broker as well; `table` is where they are, for messages.
    pub fn new(server: &MqttSettings, table: &str) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting(format!("{table}.{name}"), reason);
        let url = server.url.trim_end_matches('/');
        if url.contains('@') {
            return Err(refused("url", "must not contain a password: set `username` and `password_file`"));
        }
        if !is_redis(url) {
            return Err(refused("url", URL));
        }
        let info = url.into_connection_info().map_err(|_| refused("url", URL))?;
        let mut login = info.redis_settings().clone();
        if let Some(username) = server.username.as_deref() {
            login = login.set_username(username);
        }
        let password = server.password_file.as_deref().map(SecretFile::open).transpose()?;
        let certificates = certificates(server, &refused)?;
        let node = Self { info: info.set_redis_settings(login), password, certificates, url: url.to_owned() };
        // It connects to nothing yet.
        node.client().map_err(|error| refused("ca_certificate", &format!("or `certificate` is not valid: {error}")))?;
        Ok(node)
    }

    /// The address and the login, with the password as it is now.
    fn info(&self) -> ConnectionInfo {
        let info = self.info.clone();
        let Some(password) = &self.password else { return info };
        let login = info.redis_settings().clone().set_password(password.current().expose());
        info.set_redis_settings(login)
    }

    pub(super) fn client(&self) -> RedisResult<Client> {
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(self.info(), certificates.clone()),
            None => Client::open(self.info()),
        }
    }

    pub(super) fn cluster(&self) -> ClusterClientBuilder {
        let builder = ClusterClient::builder([self.info()]);
        match &self.certificates {
            Some(certificates) => builder.certs(certificates.clone()),
            None => builder,
        }
    }

    /// Returns true if both have the same address, as far as their URLs tell.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let address = |node: &Self| match node.info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                let host = if ["127.0.0.1", "::1"].contains(&host.as_str()) { "localhost" } else { host };
                Some((host.to_ascii_lowercase(), *port))
            }
            _ => None,
        };
        address(self) == address(other)
    }
}

/// The certificates of the settings; `None` without TLS.
fn certificates(
    server: &MqttSettings,
    refused: &dyn Fn(&str, &str) -> Error,
) -> Result<Option<TlsCertificates>, Error> {
    let MqttSettings { url, ca_certificate, certificate, key, .. } = server;
    if !url.starts_with(TLS) {
        let has_any = [ca_certificate, certificate, key].into_iter().any(Option::is_some);
        let reason = "must start with rediss:// where certificates are set";
        return if has_any { Err(refused("url", reason)) } else { Ok(None) };
    }
    let pem = |name: &str, path: &Path| match read(path)? {
        text if text.contains("-----BEGIN CERTIFICATE-----") => Ok(text.into_bytes()),
        _ => Err(refused(name, "must be a PEM file with a certificate")),
    };
    let client_tls = match (certificate, key) {
        (None, None) => None,
        (Some(path), Some(key)) => {
            Some(ClientTlsConfig { client_cert: pem("certificate", path)?, client_key: read(key)?.into_bytes() })
        }
        _ => return Err(refused("key", "must be set together with `certificate`")),
    };
    let root_cert = ca_certificate.as_deref().map(|path| pem("ca_certificate", path)).transpose()?;
    Ok(Some(TlsCertificates { client_tls, root_cert }))
}
