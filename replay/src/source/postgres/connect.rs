//! Connects to PostgreSQL.

use std::{net::IpAddr, time::Duration};

use client::Trust;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Config,
    config::{Host, SslMode},
};
use types::{Kind, Secret};

use super::{fault, password, tls::Tls};
use crate::Error;

/// Maximum time for connecting to an address of a host, and for its first answers, if the URL names none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of addresses that a host may have: one of each version of IP, of which the first may lead nowhere.
const ADDRESSES: u32 = 2;

/// The server, and how to log in there.
#[derive(Clone)]
pub struct PostgresSettings {
    /// As in `postgres://user@host:5432/chirpstack_integration`. Without `sslmode` in it, TLS is used for all hosts but this
    /// one.
    pub url: String,
    /// The password, if it is not in the URL.
    pub password: Option<Secret>,
    /// A file with the password, or with lines like those of `.pgpass`.
    pub password_file: Option<Secret>,
    /// The certificate authority of the server, in PEM; the system's if there is none.
    pub authority: Option<String>,
}

/// Returns true if a URL leads to PostgreSQL.
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Connects; also returns the name of the server for people.
pub(super) async fn connect(settings: &PostgresSettings) -> Result<(Client, String), Error> {
    let mut config: Config = settings.url.parse().map_err(|error| invalid(&error))?;
    let wait = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
    config.connect_timeout(wait);
    if config.get_application_name().is_none() {
        config.application_name("airlock replay");
    }
    if config.get_dbname().is_none() {
        return Err(Error::Invalid("the URL has no database: add it, as in /chirpstack_integration".to_owned()));
    }
    if config.get_password().is_none()
        && let Some(password) = password(settings, &config)
    {
        config.password(password.expose());
    }
    if !settings.url.contains("sslmode=") {
        config.ssl_mode(if is_local(&config) { SslMode::Disable } else { SslMode::Require });
    }
    let server = name(&config);
    let trust = settings.authority.clone().map_or(Trust::System, Trust::Certificate);
    let tls =
        trust.tls().map_err(|error| Error::Invalid(format!("the certificate authority is not valid: {error}")))?;
    // The library waits so long only for the connection, and for ever for a server that says nothing.
    let wait_for_all = wait.saturating_mul(config.get_hosts().len().max(1) as u32).saturating_mul(ADDRESSES);
    let connected = timeout(wait_for_all, config.connect(Tls::new(tls))).await.map_err(|_| fault::silent(&server))?;
    let (client, connection) = connected.map_err(|error| fault::while_connecting(&server, error))?;
    // Its error is that of the query which waits for it, too.
    tokio::spawn(async move { drop(connection.await) });
    Ok((client, server))
}

/// The password that was given, or that of the file for this server.
fn password(settings: &PostgresSettings, config: &Config) -> Option<Secret> {
    let of_file = |file: &Secret| {
        let port = config.get_ports().first().map_or_else(|| "5432".to_owned(), ToString::to_string);
        let (database, user) = (config.get_dbname().unwrap_or_default(), config.get_user().unwrap_or_default());
        password::find(file.expose(), [&host(config), &port, database, user]).map(Secret::new)
    };
    settings.password_file.as_ref().and_then(of_file).or_else(|| settings.password.clone())
}

/// An error of the URL, which does not repeat it.
fn invalid(error: &tokio_postgres::Error) -> Error {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = format!("the URL must be like postgres://user@host:5432/database{cause}");
    Error::Postgres { kind: Kind::Invalid, text, source: None }
}

/// Returns true if all hosts are this machine, and so are all addresses that are given for them.
fn is_local(config: &Config) -> bool {
    config.get_hostaddrs().iter().all(IpAddr::is_loopback)
        && config.get_hosts().iter().all(|host| match host {
            Host::Tcp(host) => host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
            Host::Unix(_) => true,
        })
}

fn host(config: &Config) -> String {
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    }
}

fn name(config: &Config) -> String {
    format!("the database `{}` at {}", config.get_dbname().unwrap_or_default(), host(config))
}
