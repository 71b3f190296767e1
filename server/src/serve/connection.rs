//! One connection: an optional TLS handshake, then HTTP/1.1 or HTTP/2, whichever the client speaks.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, extract::ConnectInfo};
use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::Watcher},
    service::TowerToHyperService,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::{ServiceExt, service_fn};

use super::{ServeSettings, admission::AddressTenant};
use crate::{
    concurrency_limit::{ConcurrencyLimit, Permit},
    rate_limit::rate_limit_address,
};

/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a request's head, in bytes: room for a token of 16 KiB. A larger head gets 431.
const HEAD_BYTES_MAX: u32 = 32 * 1024;
/// Maximum number of concurrent requests on one HTTP/2 connection.
const STREAMS_MAX: u32 = 200;
/// How often an idle HTTP/2 client is pinged, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The first bytes of every HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    connections_max: usize,
    per_address_max: usize,
    head_timeout: Duration,
}

/// Everything that serving a connection of one service takes.
#[derive(Clone)]
pub(super) struct Connection {
    http: Builder<TokioExecutor>,
    router: Router,
    permits: Arc<Semaphore>,
    addresses: Arc<ConcurrencyLimit>,
    per_address_max: usize,
    head_timeout: Duration,
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    peer: SocketAddr,
    /// What requests from this address count for if their caller is not known.
    tenant: Arc<str>,
    _permits: (Permit, OwnedSemaphorePermit),
}

impl Limits {
    pub(super) fn of(settings: &ServeSettings) -> Self {
        Self {
            connections_max: settings.connections_max.clamp(1, Semaphore::MAX_PERMITS),
            per_address_max: settings.connections_per_address_max.max(1),
            head_timeout: Duration::from_millis(settings.head_timeout_ms),
        }
    }
}

impl Connection {
    pub(super) fn new(router: Router, limits: Limits) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            .max_buf_size(HEAD_BYTES_MAX as usize);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL);
        let permits = Arc::new(Semaphore::new(limits.connections_max));
        let Limits { per_address_max, head_timeout, .. } = limits;
        Self { http, router, permits, addresses: Arc::default(), per_address_max, head_timeout }
    }

    /// Waits until another connection is allowed; none if its address has too many, or its peer has disconnected.
    pub(super) async fn admit(&self, stream: TcpStream) -> Option<Accepted> {
        let peer = stream.peer_addr().ok()?;
        let tenant: Arc<str> = rate_limit_address(peer.ip()).into();
        let of_address = self.addresses.acquire(&tenant, self.per_address_max)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(Accepted { stream, peer, tenant, _permits: (of_address, permit) })
    }

    /// Serves one connection until it closes.
    pub(super) async fn serve(
        self,
        accepted: Accepted,
        tls: Option<Arc<ServerConfig>>,
        watcher: Watcher,
        stop: CancellationToken,
    ) {
        let Accepted { stream, peer, tenant, _permits } = accepted;
        // Without this, small gRPC frames would be delayed. A socket that refuses is about to fail anyway.
        let _ = stream.set_nodelay(true);
        let Some(config) = tls else { return self.serve_http(stream, peer, tenant, watcher).await };
        let handshake = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream));
        match stop.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve_http(stream, peer, tenant, watcher).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "TLS handshake failed"),
            Some(Err(_)) => tracing::debug!("TLS handshake timed out"),
            None => {}
        }
    }

    /// Serves HTTP, and adds the peer's address to every request as [`ConnectInfo`].
    async fn serve_http<S>(self, stream: S, peer: SocketAddr, tenant: Arc<str>, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = TokioIo::new(FirstBytes::new(stream, self.head_timeout));
        let router = self.router;
        let service = TowerToHyperService::new(service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(AddressTenant(Arc::clone(&tenant)));
            router.clone().oneshot(request)
        }));
        let connection = self.http.serve_connection(stream, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(error, "connection failed");
        }
    }
}

/// A stream with a time limit until the client has shown whether it speaks HTTP/1.1 or HTTP/2.
///
/// hyper-util waits for these first bytes without a limit. After them hyper's own limits apply, and this only forwards.
struct FirstBytes<S> {
    stream: S,
    seen: usize,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> FirstBytes<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self { stream, seen: 0, deadline: Some(Box::pin(sleep(limit))) }
    }

    /// Drops the deadline once the client has sent the whole preface, or something else.
    fn inspect(&mut self, bytes: &[u8]) {
        let expected = &PREFACE[self.seen..];
        let inspected = bytes.len().min(expected.len());
        self.seen += inspected;
        if self.seen == PREFACE.len() || bytes[..inspected] != expected[..inspected] {
            self.deadline = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        let Some(deadline) = &mut self.deadline else { return Pin::new(&mut self.stream).poll_read(context, buffer) };
        if deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.inspect(&buffer.filled()[filled..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
