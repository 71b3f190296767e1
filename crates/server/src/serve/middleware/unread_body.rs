//! Reads what is left of a request's body after the response, so that the client gets to see the response.
//!
//! When a server closes a connection with bytes unread, the operating system resets it, and a client that is still
//! sending loses a response such as 413 or 401. Web servers call the remedy a lingering close.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Request, Version, header},
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum number of bytes read and thrown away: eight times the default limit of a body.
const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum time for that. The connection is closed afterwards.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(5);

/// Number of bytes of all bodies thrown away per second: what nobody wants must not take the processor from others.
const UNREAD_BYTES_PER_SECOND: u32 = 64 * 1024 * 1024;

/// The bodies of a service that are thrown away. They take turns, part by part.
#[derive(Clone)]
pub(super) struct UnreadBodies {
    /// Time at which the next part may be thrown away.
    next: Arc<Mutex<Instant>>,
}

/// A body that is read to its end in the background when its reader stops early.
struct Drained {
    body: Option<Body>,
    /// False while the client waits for `100 Continue`, and has not sent anything: it is told so at the first read.
    is_sent: bool,
    pace: UnreadBodies,
}

impl UnreadBodies {
    pub(super) fn new() -> Self {
        Self { next: Arc::new(Mutex::new(Instant::now())) }
    }

    /// Wraps the body of an HTTP/1 request; HTTP/2 can end one stream without closing the connection.
    pub(super) fn drain_unread(&self, request: Request<Body>) -> Request<Body> {
        if request.version() == Version::HTTP_2 || request.body().is_end_stream() {
            return request;
        }
        let is_sent = !request.headers().contains_key(header::EXPECT);
        request.map(|body| Body::new(Drained { body: Some(body), is_sent, pace: self.clone() }))
    }

    async fn drain(&self, mut body: Body) {
        let mut left = UNREAD_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => break,
            }
            sleep_until(self.take_turn(bytes)).await;
        }
    }

    /// Returns the time at which this many bytes have had their turn.
    fn take_turn(&self, bytes: usize) -> Instant {
        let time = Duration::from_secs_f64(bytes as f64 / f64::from(UNREAD_BYTES_PER_SECOND));
        let mut next = self.next.lock();
        *next = Instant::now().max(*next) + time;
        *next
    }
}

impl HttpBody for Drained {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_sent = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        let is_sent = self.is_sent;
        let Some(body) = self.body.take().filter(|body| is_sent && !body.is_end_stream()) else { return };
        let pace = self.pace.clone();
        tokio::spawn(async move { timeout(UNREAD_TIME_MAX, pace.drain(body)).await });
    }
}

#[cfg(test)]
mod tests {
    use futures::{future::join_all, stream};

    use super::*;

    const PART_BYTES: usize = 64 * 1024;

    fn body(bytes: usize) -> Body {
        let parts = (0..bytes / PART_BYTES).map(|_| Ok::<_, axum::Error>(Bytes::from_static(&[b' '; PART_BYTES])));
        Body::from_stream(stream::iter(parts))
    }

    #[tokio::test(start_paused = true)]
    async fn all_bodies_together_are_thrown_away_at_one_pace() {
        let (bodies, began) = (UnreadBodies::new(), Instant::now());
        join_all((0..8).map(|_| bodies.drain(body(UNREAD_BYTES_MAX)))).await;
        let seconds = (8 * UNREAD_BYTES_MAX) as u32 / UNREAD_BYTES_PER_SECOND;
        assert_eq!(began.elapsed().as_secs(), u64::from(seconds));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_body_does_not_wait_for_the_end_of_long_ones() {
        let (bodies, began) = (UnreadBodies::new(), Instant::now());
        let long = join_all((0..8).map(|_| bodies.drain(body(UNREAD_BYTES_MAX))));
        tokio::select! {
            _ = long => panic!("the long bodies came first"),
            () = bodies.drain(body(PART_BYTES)) => {}
        }
        assert!(began.elapsed() < Duration::from_millis(100), "it took {:?}", began.elapsed());
    }
}
