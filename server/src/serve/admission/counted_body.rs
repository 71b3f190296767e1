//! A request body whose bytes are charged as they are read.
//!
//! The length that the head declares is only a claim of the client, which may be anything.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
};
use hyper::body::{Frame, SizeHint};

use crate::usage::Usage;

struct CountedBody {
    body: Body,
    usage: Usage,
}

/// Adds the bytes of a request's body to its usage as they are read.
pub(super) fn count_body(request: Request, usage: &Usage) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(CountedBody { body, usage: usage.clone() }))
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            self.usage.add_bytes(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    /// Three bytes, and a length that is not theirs.
    struct Boastful(Full<Bytes>);

    impl HttpBody for Boastful {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Pin::new(&mut self.0).poll_frame(context)
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(u64::MAX - 2)
        }
    }

    #[tokio::test]
    async fn charges_what_arrives_and_keeps_what_is_declared() {
        let [usage, three_bytes] = [Usage::default(), Usage::default()];
        let request = Request::new(Body::new(Boastful(Full::from("abc"))));
        let body = count_body(request, &usage).into_body();
        assert_eq!((body.size_hint().exact(), usage.fuel()), (Some(u64::MAX - 2), 0));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        three_bytes.add_bytes(3);
        assert_eq!(usage.fuel(), three_bytes.fuel());
    }

    #[test]
    fn usage_does_not_wrap() {
        let usage = Usage::default();
        (0..2).for_each(|_| usage.add_bytes(u64::MAX));
        assert_eq!(usage.fuel(), u64::MAX);
    }
}
