//! One connection: an optional TLS handshake, then HTTP/1.1 or HTTP/2, whichever the client speaks.

use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo};
use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::Watcher},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use tower::{ServiceExt, service_fn};

use super::{
    ServeSettings,
    activity::Activity,
    admission::AddressTenant,
    client_stream::ClientStream,
    metrics,
    open_connections::{OpenConnection, OpenConnections},
};
use crate::{ledger::Ledger, rate_limit::rate_limit_address};

/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request's head, in bytes: room for a token of 16 KiB. A larger head gets 431.
const HEAD_BYTES_MAX: u32 = 32 * 1024;
/// Maximum number of concurrent requests on one HTTP/2 connection.
const STREAMS_MAX: u32 = 200;
/// Interval between pings of an idle HTTP/2 client, and the maximum time to wait for its answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Maximum number of bytes that a client may send of one request's body, and of all bodies on a connection, before
/// somebody reads them. A request that waits for its turn has that much in memory.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;

/// Everything that serving a connection of one service takes.
#[derive(Clone)]
pub(super) struct Connection {
    http: Builder<TokioExecutor>,
    router: Router,
    open: Arc<OpenConnections>,
    head_timeout: Duration,
    unread_timeout: Duration,
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    peer: SocketAddr,
    open: OpenConnection,
}

/// The client of a connection.
struct Client {
    peer: SocketAddr,
    /// The tenant of its requests if their caller is not known.
    tenant: Arc<str>,
    activity: Arc<Activity>,
}

impl Connection {
    pub(super) fn new(router: Router, settings: &ServeSettings, ledger: &Ledger) -> Self {
        let [head_timeout, unread_timeout] =
            [settings.head_timeout_ms, settings.unread_timeout_ms].map(Duration::from_millis);
        let mut http = Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(HEAD_BYTES_MAX as usize);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL);
        Self { http, router, open: OpenConnections::new(settings, ledger), head_timeout, unread_timeout }
    }

    /// Waits until another connection is allowed; `None` if its address has its share, or its peer has disconnected.
    pub(super) async fn admit(&self, stream: TcpStream) -> Option<Accepted> {
        let peer = stream.peer_addr().ok()?;
        let open = self.open.admit(peer.ip()).await?;
        Some(Accepted { stream, peer, open })
    }

    /// Serves one connection until it closes, or has to.
    pub(super) async fn serve(
        self,
        accepted: Accepted,
        tls: Option<Arc<ServerConfig>>,
        watcher: Watcher,
        stop: CancellationToken,
    ) {
        let Accepted { stream, peer, open } = accepted;
        let (activity, unread_timeout) = (Arc::clone(&open.activity), self.unread_timeout);
        let client = Client { peer, tenant: rate_limit_address(peer.ip()).into(), activity: Arc::clone(&activity) };
        tokio::select! {
            () = self.serve_client((stream, client), tls, watcher, stop) => {}
            () = activity.closed() => tracing::debug!("connection closed to make room for another"),
            () = activity.unread_for(unread_timeout) => {
                metrics::connection_closed("unread");
                tracing::debug!("connection closed: its client does not read");
            }
        }
    }

    /// Serves one client, after a handshake if there is TLS.
    async fn serve_client(
        self,
        (stream, client): (TcpStream, Client),
        tls: Option<Arc<ServerConfig>>,
        watcher: Watcher,
        stop: CancellationToken,
    ) {
        // Without this, small gRPC frames would be delayed. A socket that refuses is about to fail anyway.
        let _ = stream.set_nodelay(true);
        let Some(config) = tls else { return self.serve_http(stream, client, watcher).await };
        let handshake = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream));
        match stop.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve_http(stream, client, watcher).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "TLS handshake failed"),
            Some(Err(_)) => tracing::debug!("TLS handshake timed out"),
            None => {}
        }
    }

    /// Serves HTTP, and adds to every request who sends it.
    async fn serve_http<S>(self, stream: S, client: Client, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = TokioIo::new(ClientStream::new(stream, self.head_timeout, self.unread_timeout));
        let (router, peer) = (self.router, client.peer);
        let service = TowerToHyperService::new(service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(client.peer));
            request.extensions_mut().insert(AddressTenant(Arc::clone(&client.tenant)));
            request.extensions_mut().insert(Arc::clone(&client.activity));
            let running = client.activity.begin_request();
            let response = router.clone().oneshot(request);
            async move {
                let _running = running;
                response.await
            }
        }));
        let connection = self.http.serve_connection(stream, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            note_failure(peer, error);
        }
    }
}

/// Logs that a connection failed. h2 also closes one when too many small frames wait to be read, whatever its window
/// allows: who sends faster than the service reads does nothing wrong, and finds the reason nowhere else.
fn note_failure(peer: SocketAddr, error: Box<dyn Error + Send + Sync>) {
    tracing::debug!(error, "connection failed");
    // This is what tonic makes of `ENHANCE_YOUR_CALM`.
    if Status::from_error(error).code() == Code::ResourceExhausted {
        metrics::connection_closed("frames");
        tracing::info!(
            %peer,
            "connection closed: its client sent too many frames, or too many small ones that waited to be read: send \
             uplinks over gRPC at most 256 ahead of their answers"
        );
    }
}
