//! Finds the primary that sentinels name.

use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult, cmd};

/// The address of the primary that sentinels know by the host of `server`, from the first sentinel that names one.
pub(super) async fn primary(
    sentinels: &[Client],
    server: &ConnectionInfo,
    config: &AsyncConnectionConfig,
) -> RedisResult<ConnectionAddr> {
    let mut failure: RedisError = (ErrorKind::Io, "no sentinel answers").into();
    for sentinel in sentinels {
        match ask(sentinel, name(server), config).await {
            Ok(Some((host, port))) => return Ok(address(server, host, port)),
            Ok(None) => {
                let what = "the sentinels know no primary of this name";
                failure = (ErrorKind::MasterNameNotFoundBySentinel, what, name(server).to_owned()).into();
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn ask(sentinel: &Client, name: &str, config: &AsyncConnectionConfig) -> RedisResult<Option<(String, u16)>> {
    let mut connection = sentinel.get_multiplexed_async_connection_with_config(config).await?;
    cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name).query_async(&mut connection).await
}

fn name(server: &ConnectionInfo) -> &str {
    match server.addr() {
        ConnectionAddr::Tcp(name, _) | ConnectionAddr::TcpTls { host: name, .. } => name,
        _ => "",
    }
}

/// An address, with TLS as the settings have it.
fn address(server: &ConnectionInfo, host: String, port: u16) -> ConnectionAddr {
    match server.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    }
}
