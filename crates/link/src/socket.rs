//! Sockets to servers, with or without TLS.

use std::{io, sync::Arc};

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// A connection to a server, with or without TLS.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Connects to a server; in plain text if there is no configuration of TLS.
pub async fn connect_socket(host: &str, port: u16, tls: Option<&Arc<ClientConfig>>) -> io::Result<Box<dyn Socket>> {
    let tcp = TcpStream::connect((host, port)).await?;
    // Packets are sent in batches, which must not wait for more.
    tcp.set_nodelay(true)?;
    let Some(config) = tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(config.clone()).connect(name, tcp).await?))
}
