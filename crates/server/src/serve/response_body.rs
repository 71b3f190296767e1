//! A response's body: it is charged until its client has read it, and handed over in pieces.
//!
//! Without this, hyper would hold any amount of a response that nobody reads, for any time.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use super::activity::{Activity, Sending};
use crate::ledger::{Budget, Charge, Exceeded, Owner};

/// Minimum charge for a response, in bytes, before its request is handled. The responses of most changes are smaller,
/// so that none is refused when the change has been made.
const BYTES_MIN: u64 = 16 * 1024;
/// Number of bytes handed over at once: a client that reads less than that in the time it has is cut.
const PIECE_BYTES: usize = 32 * 1024;

type ReadFrame = Option<Result<Frame<Bytes>, axum::Error>>;

/// Room for a response that is still to come.
pub(super) struct Reserved {
    charge: Charge,
    activity: Option<Arc<Activity>>,
}

struct ResponseBody {
    body: Body,
    /// A frame of the body, or the rest of one.
    frame: Option<Frame<Bytes>>,
    unread: Arc<Unread>,
}

/// The part of a response that its client has not read. The body has it, and each piece that was not sent.
struct Unread {
    held: Mutex<ChargedBytes>,
    sending: Option<Sending>,
}

struct ChargedBytes {
    charge: Charge,
    charged: u64,
    bytes: u64,
}

struct Piece {
    bytes: Bytes,
    unread: Arc<Unread>,
}

impl Reserved {
    /// Reserves room for a response to `owner`, unless it has too many that are not read.
    pub(super) fn new(budget: &Arc<Budget>, owner: &Owner, activity: Option<Arc<Activity>>) -> Result<Self, Exceeded> {
        Ok(Self { charge: budget.charge(owner, BYTES_MIN)?, activity })
    }

    /// Charges for a response until it is read. Fails if it exceeds its owner's share.
    pub(super) async fn send(self, response: Response) -> Result<Response, Exceeded> {
        if response.body().is_end_stream() {
            return Ok(response);
        }
        let (head, mut body) = response.into_parts();
        let held = ChargedBytes { charge: self.charge, charged: BYTES_MIN, bytes: 0 };
        let sending = self.activity.as_ref().map(Activity::begin_response);
        let unread = Arc::new(Unread { held: Mutex::new(held), sending });
        // gRPC encodes a message only when it is asked for: before, nobody knows how large it is.
        let frame = match poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context))).await {
            Poll::Ready(Some(Ok(frame))) => Some(frame),
            Poll::Ready(Some(Err(error))) => {
                let failed = futures::stream::iter([Err::<Bytes, _>(error.into_inner())]);
                return Ok(Response::from_parts(head, Body::from_stream(failed)));
            }
            Poll::Ready(None) => return Ok(Response::from_parts(head, Body::empty())),
            Poll::Pending => None,
        };
        unread.hold(frame.as_ref())?;
        Ok(Response::from_parts(head, Body::new(ResponseBody { body, frame, unread })))
    }
}

impl ResponseBody {
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<ReadFrame> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                self.unread.note_wanted();
                return Poll::Pending;
            }
        };
        let held = self.unread.hold(frame.as_ref().and_then(|frame| frame.as_ref().ok()));
        Poll::Ready(held.map_or_else(|exceeded| Some(Err(axum::Error::new(exceeded))), |()| frame))
    }

    /// A piece of a frame; the rest is kept.
    fn piece(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let mut bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(trailers) => return trailers,
        };
        let rest = bytes.split_off(bytes.len().min(PIECE_BYTES));
        self.frame = (!rest.is_empty()).then(|| Frame::data(rest));
        Frame::data(Bytes::from_owner(Piece::new(bytes, &self.unread)))
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ReadFrame> {
        let frame = match self.frame.take() {
            Some(frame) => Some(Ok(frame)),
            None => ready!(self.poll_body(context)),
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| self.piece(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.frame.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let kept = self.frame.as_ref().and_then(Frame::data_ref).map_or(0, |bytes| bytes.len() as u64);
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(kept));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(kept)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl Unread {
    /// Holds a frame until it is sent. The charge is for the most that was held at once.
    fn hold(&self, frame: Option<&Frame<Bytes>>) -> Result<(), Exceeded> {
        let bytes = frame.and_then(Frame::data_ref).map_or(0, |bytes| bytes.len() as u64);
        self.held(|held| {
            let more = (held.bytes + bytes).saturating_sub(held.charged);
            if more > 0 {
                held.charge.grow(more)?;
            }
            held.charged += more;
            held.bytes += bytes;
            Ok(())
        })
    }

    fn note_wanted(&self) {
        self.sending.iter().for_each(Sending::note_wanted);
    }

    fn held<T>(&self, change: impl FnOnce(&mut ChargedBytes) -> T) -> T {
        // Nothing that runs under this lock leaves it half changed.
        change(&mut self.held.lock())
    }
}

impl Piece {
    fn new(bytes: Bytes, unread: &Arc<Unread>) -> Self {
        unread.sending.iter().for_each(Sending::note_part);
        Self { bytes, unread: Arc::clone(unread) }
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        self.unread.held(|held| held.bytes -= bytes);
        self.unread.sending.iter().for_each(Sending::note_sent);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::BodyExt;

    use super::*;
    use crate::ledger::{BudgetSettings, Ledger};

    const KIB: usize = 1024;

    fn owner() -> Owner {
        Owner::User("alice".into())
    }

    fn budget(owner_max: u64) -> Arc<Budget> {
        let settings = BudgetSettings { response_bytes_per_owner_max: owner_max, ..BudgetSettings::default() };
        Ledger::new(&settings).responses
    }

    async fn send(budget: &Arc<Budget>, body: impl Into<Body>) -> Result<Body, Exceeded> {
        let reserved = Reserved::new(budget, &owner(), None)?;
        reserved.send(Response::new(body.into())).await.map(Response::into_body)
    }

    #[tokio::test]
    async fn a_response_is_charged_until_its_last_piece_is_sent() {
        let budget = budget(1 << 20);
        let mut body = send(&budget, vec![b'x'; 100 * KIB]).await.unwrap();
        assert_eq!((body.size_hint().exact(), budget.used()), (Some(102_400), 102_400));
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [32 * KIB, 32 * KIB, 32 * KIB, 4 * KIB]);
        drop(body);
        let part = pieces.pop().unwrap().split_to(1);
        pieces.clear();
        assert_eq!(budget.used(), 102_400, "a part of the last piece was not sent");
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn who_has_too_much_unread_gets_no_more() {
        let budget = budget(200 * KIB as u64);
        assert!(send(&budget, vec![b'x'; 201 * KIB]).await.is_err(), "it is too large");
        let unread = send(&budget, vec![b'x'; 190 * KIB]).await.unwrap();
        assert!(send(&budget, "small").await.is_err(), "refused before its request is handled");
        assert_eq!(unread.collect().await.unwrap().to_bytes().len(), 190 * KIB);
        assert!(send(&budget, "small").await.is_ok());
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_stream_is_charged_with_the_most_that_it_has_unsent() {
        let budget = budget(100 * KIB as u64);
        let frames = futures::stream::iter((0..100).map(|_| Ok::<_, Infallible>(vec![b'x'; 30 * KIB])));
        let mut body = send(&budget, Body::from_stream(frames)).await.unwrap();
        for _ in 0..50 {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 30 * KIB);
        }
        assert_eq!(budget.used(), 30 * KIB as u64);
        let rest = body.collect().await;
        assert!(rest.is_err(), "nothing of it is sent");
        drop(rest);
        assert_eq!(budget.used(), 0);
    }
}
