//! A TCP proxy whose connections can be cut and redirected.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Forwards connections to a server, or closes them.
pub struct Proxy {
    /// Where clients connect.
    pub address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
}

impl Proxy {
    /// Starts a proxy for `target`; without one it closes every connection.
    pub async fn start(target: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, receiver) = watch::channel(target);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, receiver.clone()));
            }
        });
        Self { address, target: sender }
    }

    /// Closes all connections; forwards new ones to `target`.
    pub fn redirect(&self, target: Option<SocketAddr>) {
        self.target.send_replace(target);
    }
}

async fn forward(mut client: TcpStream, mut target: watch::Receiver<Option<SocketAddr>>) {
    let Some(address) = *target.borrow_and_update() else { return };
    let Ok(mut server) = TcpStream::connect(address).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = target.changed() => {}
    }
}
