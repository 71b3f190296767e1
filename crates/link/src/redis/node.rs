//! A Redis server, one node of a cluster, or what sentinels name, and how to log in there.

use std::{path::Path, time::Duration};

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisResult,
    TlsCertificates,
    cluster::{ClusterClient, ClusterClientBuilder},
};

use super::settings::StreamSettings;
use crate::{
    Error, Remote,
    secret_file::{SecretFile, read},
};

const TLS: &str = "rediss://";
/// Maximum time to wait for a connection where no setting says another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PLAIN: (&str, &str) = ("url", "must start with rediss:// where certificates are set");
const URL: &str = "must be like redis://host:6379, or rediss:// for TLS";
/// Minimum of the setting. A bridge renews its claims three times as often, each time with a command.
const CLAIM_AFTER_MS_MIN: u64 = 1000;

/// A server, one node of a cluster, or what sentinels name, and how to log in there.
#[derive(Clone)]
pub struct Node {
    info: ConnectionInfo,
    /// Further nodes of a cluster.
    others: Vec<ConnectionInfo>,
    /// They name the server; none if its address is known.
    pub(super) sentinels: Vec<Client>,
    /// `None` where the server is asked.
    pub(super) is_cluster: Option<bool>,
    pub(super) connect_timeout: Duration,
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
        Self::new(&settings.remote(), table)
    }

    /// A server, in settings that may name a broker as well; `table` is where they are, for messages.
    pub fn new(server: &Remote, table: &str) -> Result<Self, Error> {
        let refused = |name: &str, reason: &str| Error::setting(format!("{table}.{name}"), reason);
        Self::with_sentinels(server, &[], &refused)
    }

    /// Like [`Self::new`], and the server is the one that these sentinels name, if there are any. `refused` is the error
    /// for a setting and what is wrong with it.
    pub fn with_sentinels<E: From<Error>>(
        server: &Remote,
        sentinels: &[String],
        refused: &dyn Fn(&str, &str) -> E,
    ) -> Result<Self, E> {
        let url = server.url.trim_end_matches('/');
        let info = address(url).map_err(|reason| refused("url", reason))?;
        let mut login = info.redis_settings().clone();
        if let Some(username) = server.username.as_deref() {
            login = login.set_username(username);
        }
        let password = server.password()?;
        let certificates = certificates(server, refused)?;
        let (info, url) = (info.set_redis_settings(login), url.to_owned());
        // It connects to nothing yet.
        client(info.clone(), certificates.as_ref())
            .map_err(|error| refused("ca_certificate", &format!("or `certificate` is not valid: {error}")))?;
        let sentinels = sentinels.iter().map(|url| -> Result<Client, E> {
            let info = address(url.trim_end_matches('/')).map_err(|reason| refused("sentinels", reason))?;
            client(info, certificates.as_ref()).map_err(|_| refused("sentinels", URL))
        });
        let sentinels = sentinels.collect::<Result<_, E>>()?;
        let (others, is_cluster, connect_timeout) = (Vec::new(), None, CONNECT_TIMEOUT);
        Ok(Self { info, others, sentinels, is_cluster, connect_timeout, password, certificates, url })
    }

    /// A server, the nodes of a cluster, or what these sentinels name, if there are any. The addresses have the logins.
    pub fn with_logins(
        addresses: Vec<ConnectionInfo>,
        sentinels: Vec<ConnectionInfo>,
        is_cluster: bool,
        connect_timeout: Duration,
    ) -> RedisResult<Self> {
        let mut others = addresses.into_iter();
        let info = others.next().ok_or((ErrorKind::InvalidClientConfig, "no address"))?;
        let sentinels = sentinels.into_iter().map(Client::open).collect::<RedisResult<_>>()?;
        let (others, is_cluster, url) = (others.collect(), Some(is_cluster), info.addr().to_string());
        let (password, certificates) = (None, None);
        Ok(Self { info, others, sentinels, is_cluster, connect_timeout, password, certificates, url })
    }

    /// The address and the login, with the password as it is now.
    pub(super) fn info(&self) -> ConnectionInfo {
        let info = self.info.clone();
        let Some(password) = &self.password else { return info };
        let login = info.redis_settings().clone().set_password(password.current().expose());
        info.set_redis_settings(login)
    }

    pub(super) fn has_sentinels(&self) -> bool {
        !self.sentinels.is_empty()
    }

    pub(super) fn db(&self) -> i64 {
        self.info.redis_settings().db()
    }

    /// A client of the server at this address, which connects to nothing yet.
    pub(super) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        client(info, self.certificates.as_ref())
    }

    pub(super) fn cluster(&self) -> ClusterClientBuilder {
        let builder = ClusterClient::builder([self.info()].into_iter().chain(self.others.clone()));
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

/// Parses a URL without a login.
fn address(url: &str) -> Result<ConnectionInfo, &'static str> {
    if url.contains('@') {
        return Err("must not contain a password: set `username` and `password_file`");
    }
    if !is_redis(url) {
        return Err(URL);
    }
    url.into_connection_info().map_err(|_| URL)
}

/// A client, which connects to nothing yet. Sentinels may be without TLS where their servers have it.
fn client(info: ConnectionInfo, certificates: Option<&TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) => {
            Client::build_with_tls(info, certificates.clone())
        }
        _ => Client::open(info),
    }
}

/// The certificates of the settings; `None` without TLS.
fn certificates<E: From<Error>>(
    server: &Remote,
    refused: &dyn Fn(&str, &str) -> E,
) -> Result<Option<TlsCertificates>, E> {
    let Remote { url, ca_certificate, certificate, key, .. } = server;
    let is_tls = url.starts_with(TLS);
    server.check_tls(is_tls, PLAIN, refused)?;
    if !is_tls {
        return Ok(None);
    }
    let pem = |name: &str, path: &Path| -> Result<Vec<u8>, E> {
        match read(path).map_err(Error::from)? {
            text if text.contains("-----BEGIN CERTIFICATE-----") => Ok(text.into_bytes()),
            _ => Err(refused(name, "must be a PEM file with a certificate")),
        }
    };
    let client_tls = match (certificate, key) {
        (Some(path), Some(key)) => Some(ClientTlsConfig {
            client_cert: pem("certificate", path)?,
            client_key: read(key).map_err(Error::from)?.into_bytes(),
        }),
        _ => None,
    };
    let root_cert = ca_certificate.as_deref().map(|path| pem("ca_certificate", path)).transpose()?;
    Ok(Some(TlsCertificates { client_tls, root_cert }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_are_addresses_without_logins() {
        let server = Remote { url: "redis://mymaster".to_owned(), ..Remote::default() };
        let refused = |name: &str, reason: &str| Error::setting(name, reason);
        for (sentinel, is_accepted) in
            [("redis://host:26379", true), ("redis://user:hush@host:26379", false), ("host:26379", false)]
        {
            let refusal = Node::with_sentinels(&server, &[sentinel.to_owned()], &refused).err();
            assert_eq!(refusal.is_none(), is_accepted, "{sentinel}");
            assert!(refusal.is_none_or(|error| error.to_string().contains("`sentinels`")), "{sentinel}");
        }
    }
}
