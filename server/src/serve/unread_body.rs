//! Reads what is left of a request's body after the response, so that the client gets to see the response.
//!
//! When a server closes a connection with bytes unread, the operating system resets it, and a client that is still
//! sending loses a response such as 413 or 401. Web servers call the remedy a lingering close.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Request, Version, header},
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

/// How much is read and thrown away: eight times the default limit of a body.
const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long that may take. The connection is closed afterwards.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(5);

/// A body that is read to its end in the background when its reader stops early.
struct Drained(Option<Body>);

/// Wraps the body of an HTTP/1 request; HTTP/2 can end one stream without closing the connection.
pub(super) fn drain_unread(request: Request<Body>) -> Request<Body> {
    // A client that waits for `100 Continue` has not sent anything yet.
    let waits = request.headers().contains_key(header::EXPECT);
    if request.version() == Version::HTTP_2 || waits || request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(Drained(Some(body))))
}

impl HttpBody for Drained {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        let Some(mut body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        tokio::spawn(tokio::time::timeout(UNREAD_TIME_MAX, async move {
            let mut left = UNREAD_BYTES_MAX;
            while let Some(Ok(frame)) = body.frame().await {
                match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(rest) => left = rest,
                    None => break,
                }
            }
        }));
    }
}
