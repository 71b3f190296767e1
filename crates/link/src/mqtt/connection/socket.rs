//! The socket of a connection, with or without TLS.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use super::super::endpoint::Endpoint;

pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Connects to the broker of `endpoint`.
pub(super) async fn connect(endpoint: &Endpoint) -> io::Result<Box<dyn Socket>> {
    let host = &endpoint.url.host;
    let tcp = TcpStream::connect((host.as_str(), endpoint.url.port)).await?;
    // Packets are sent in batches, which must not wait for more.
    tcp.set_nodelay(true)?;
    let Some(config) = &endpoint.tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await?))
}
