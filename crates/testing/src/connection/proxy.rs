//! A TCP proxy whose connections can be cut and redirected.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::JoinSet,
};

/// Decides, by the bytes that a client has sent, whether its connection goes on.
type Passes = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Forwards connections to a server, or closes them.
pub struct Proxy {
    /// The address to which clients connect.
    pub address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
}

struct ProxyState {
    target: Option<SocketAddr>,
    connections: JoinSet<()>,
}

impl Proxy {
    /// Starts a proxy for `target`; without one it closes every connection.
    pub async fn start(target: Option<SocketAddr>) -> Self {
        Self::start_as(target, false, None).await
    }

    /// Starts a proxy for `target` that closes a connection when a client sends something that `passes` does not let
    /// through. It gets what arrived at once.
    pub async fn start_filtered(target: SocketAddr, passes: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self::start_as(Some(target), false, Some(Arc::new(passes))).await
    }

    /// Starts a proxy for an MQTT broker that looks as if it knew version 3.1.1 only.
    pub async fn start_mqtt311(target: SocketAddr) -> Self {
        Self::start_as(Some(target), true, None).await
    }

    async fn start_as(target: Option<SocketAddr>, is_mqtt311: bool, passes: Option<Arc<Passes>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ProxyState { target, connections: JoinSet::new() }));
        let accepting = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let ProxyState { target, connections } = &mut *accepting.lock().await;
                while connections.try_join_next().is_some() {}
                if let Some(target) = *target {
                    connections.spawn(forward(stream, target, is_mqtt311, passes.clone()));
                }
            }
        });
        Self { address, state }
    }

    /// Closes all connections, and returns when nothing goes through them any more; forwards new ones to `target`.
    pub async fn redirect(&self, target: Option<SocketAddr>) {
        let mut state = self.state.lock().await;
        state.target = target;
        state.connections.shutdown().await;
    }
}

async fn forward(mut client: TcpStream, target: SocketAddr, is_mqtt311: bool, passes: Option<Arc<Passes>>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    if is_mqtt311 && !pass_connect(&mut client, &mut server).await {
        return;
    }
    match passes {
        Some(passes) => copy_filtered(&mut client, &mut server, &*passes).await,
        // The client notices a failure.
        None => drop(copy_bidirectional(&mut client, &mut server).await),
    }
}

async fn copy_filtered(client: &mut TcpStream, server: &mut TcpStream, passes: &Passes) {
    let ((mut requests, mut responses), (mut from_server, mut to_server)) = (client.split(), server.split());
    let copied = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = requests.read(&mut buffer).await {
            if !passes(&buffer[..length]) || to_server.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = copied => {}
        _ = copy(&mut from_server, &mut responses) => {}
    }
}

/// Passes the beginning of a CONNECT packet of MQTT 3.1.1 on; refuses another version.
async fn pass_connect(client: &mut TcpStream, server: &mut TcpStream) -> bool {
    const LEVEL: u8 = 4;
    /// CONNACK of MQTT 5: the version of the protocol is not supported.
    const REFUSAL: [u8; 5] = [0x20, 3, 0, 0x84, 0];
    let mut start = Vec::new();
    while !start.ends_with(b"MQTT") {
        let Ok(byte) = client.read_u8().await else { return false };
        start.push(byte);
    }
    let Ok(level) = client.read_u8().await else { return false };
    start.push(level);
    if level != LEVEL {
        // The client notices a failure.
        _ = client.write_all(&REFUSAL).await;
        return false;
    }
    server.write_all(&start).await.is_ok()
}
