//! A receiver of webhooks that does not do what it should.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// A receiver that answers everything with the same status, after a while. It ends with its runtime.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) async fn start(status: u16, wait: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let this = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = Arc::clone(&this.requests);
        tokio::spawn(async move {
            loop {
                // The bench itself may have no descriptor left for a moment.
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(answer(stream, status, wait, Arc::clone(&requests)))),
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            }
        });
        this
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

async fn answer(mut stream: TcpStream, status: u16, wait: Duration, requests: Arc<AtomicUsize>) {
    let response = format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\n\r\n");
    let mut buffer = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut buffer).await {
        if !is_complete(&buffer) {
            continue;
        }
        buffer.clear();
        requests.fetch_add(1, Ordering::Relaxed);
        sleep(wait).await;
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Returns true if the bytes are a whole request.
fn is_complete(request: &[u8]) -> bool {
    let Some(head) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    request.len() >= head + 4 + length.unwrap_or_default()
}
