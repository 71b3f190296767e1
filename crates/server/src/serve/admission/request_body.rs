//! A request's body: its bytes are charged as they are read, and its request does not run while it waits for them.
//!
//! The length that the head declares is only a claim of the client, which may be anything, and a client may send
//! nothing.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
};
use futures::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::{Refusal, place::RequestPlace, request_queue::Permit};
use crate::usage::Usage;

/// Total time for which a request may keep its place while it waits for its body. A body that comes at once takes less.
const PLACE_KEPT: Duration = Duration::from_millis(100);
/// Total time for which a request may wait for its body afterwards, besides the time for the bytes that arrive.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Size up to which a body is not charged, in bytes: the places of running requests bound it.
const UNCHARGED_BYTES: u64 = 16 * 1024;
/// Memory that a part of a body takes besides its bytes while they are collected, in bytes.
const PART_BYTES: u64 = 64;
/// The time for each byte that arrives: [`super::BODY_RATE_KIB`] per second are enough.
const BYTE_TIME: Duration = Duration::from_nanos(1_000_000_000 / (1024 * super::BODY_RATE_KIB));

type ReadFrame = Option<Result<Frame<Bytes>, axum::Error>>;

struct RequestBody {
    body: Body,
    usage: Usage,
    /// Memory taken by the parts that have arrived, in bytes.
    bytes: u64,
    /// Gone once the response has begun: a stream may pause then.
    place: Weak<RequestPlace>,
    phase: Phase,
    place_kept: Patience,
    wait: Patience,
}

enum Phase {
    /// The request has its place.
    Placed,
    /// It waits for the next frame without a place.
    Away,
    /// The frame has come, and the request waits for its turn.
    Returning { frame: ReadFrame, turn: BoxFuture<'static, Result<Permit, Refusal>> },
    /// It is not handled any further.
    Refused,
}

/// Time that is left to wait.
struct Patience {
    left: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// Adds the bytes of the request's body to its usage as they are read, and has it leave its place while they are
/// awaited.
pub(super) fn read_within_limits(request: Request, usage: &Usage, place: &Arc<RequestPlace>) -> Request {
    if request.body().is_end_stream() {
        return request;
    }
    let (usage, place) = (usage.clone(), Arc::downgrade(place));
    let [place_kept, wait] = [PLACE_KEPT, WAIT_MAX].map(|left| Patience { left, waiting: None });
    request.map(|body| Body::new(RequestBody { body, usage, bytes: 0, place, phase: Phase::Placed, place_kept, wait }))
}

impl RequestBody {
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<ReadFrame> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            self.bytes += bytes as u64 + PART_BYTES;
            self.usage.add_bytes(bytes as u64);
            self.place_kept.stop();
            self.wait.stop();
            self.wait.add(BYTE_TIME.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX)));
        }
        Poll::Ready(frame)
    }

    /// Polls for the next frame, which is charged until the request ends.
    fn poll_charged(&mut self, context: &mut Context<'_>, place: &RequestPlace) -> Poll<Result<ReadFrame, Refusal>> {
        let frame = ready!(self.poll_read(context));
        let held = if self.bytes > UNCHARGED_BYTES { place.hold(self.bytes) } else { Ok(()) };
        Poll::Ready(held.map(|()| frame))
    }

    /// Polls for the next frame, once the request has its place again. Fails with the reason if it cannot have it.
    fn poll_with_place(&mut self, context: &mut Context<'_>, place: &RequestPlace) -> Poll<Result<ReadFrame, Refusal>> {
        loop {
            match &mut self.phase {
                Phase::Placed => {
                    if let Poll::Ready(frame) = self.poll_charged(context, place) {
                        return Poll::Ready(frame);
                    }
                    ready!(self.place_kept.poll_end(context));
                    place.leave()?;
                    self.phase = Phase::Away;
                }
                Phase::Away => {
                    let Poll::Ready(frame) = self.poll_charged(context, place) else {
                        ready!(self.wait.poll_end(context));
                        return Poll::Ready(Err(Refusal::BodyTooSlow));
                    };
                    self.phase = Phase::Returning { frame: frame?, turn: Box::pin(place.next_turn()) };
                }
                Phase::Returning { frame, turn } => {
                    place.return_with(ready!(turn.as_mut().poll(context))?);
                    let frame = frame.take();
                    self.phase = Phase::Placed;
                    return Poll::Ready(Ok(frame));
                }
                Phase::Refused => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Polls for the next frame of a stream whose response has begun.
    fn poll_stream(&mut self, context: &mut Context<'_>) -> Poll<ReadFrame> {
        match std::mem::replace(&mut self.phase, Phase::Placed) {
            Phase::Returning { frame, .. } => Poll::Ready(frame),
            Phase::Placed | Phase::Away | Phase::Refused => self.poll_read(context),
        }
    }
}

impl Patience {
    /// Ready when the time is over.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let (_, end) = self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(left))));
        end.as_mut().poll(context)
    }

    fn stop(&mut self) {
        let waited = self.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        self.left = self.left.saturating_sub(waited);
    }

    fn add(&mut self, time: Duration) {
        self.left = self.left.saturating_add(time).min(WAIT_MAX);
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ReadFrame> {
        let Some(place) = self.place.upgrade() else { return self.poll_stream(context) };
        let frame = ready!(self.poll_with_place(context, &place));
        Poll::Ready(frame.unwrap_or_else(|refusal| {
            self.phase = Phase::Refused;
            place.refuse(refusal);
            Some(Err(axum::Error::new(refusal)))
        }))
    }

    fn is_end_stream(&self) -> bool {
        !matches!(self.phase, Phase::Returning { .. }) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.phase {
            // The body no longer counts the frame that we keep.
            Phase::Returning { .. } => SizeHint::default(),
            _ => self.body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin};

    use futures::poll;
    use http_body_util::{BodyExt, Full};

    use tokio_util::sync::CancellationToken;

    use super::{
        super::{Refusals, Shared, request_queue::RequestQueue},
        *,
    };
    use crate::{
        ledger::{BudgetSettings, Ledger, Owner},
        serve::ServeSettings,
        usage::Tenant,
    };

    /// Three bytes, and a length that is not theirs.
    struct Boastful(Full<Bytes>);

    impl HttpBody for Boastful {
        type Data = Bytes;
        type Error = Infallible;

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

    /// A queue in which one request runs, and waits for its turn for ten seconds.
    fn queue() -> Arc<RequestQueue> {
        RequestQueue::new("test", &ServeSettings { running_max: 1, ..ServeSettings::default() })
    }

    fn ledger() -> Ledger {
        Ledger::new(&BudgetSettings::default())
    }

    async fn place(queue: &Arc<RequestQueue>, usage: &Usage) -> Arc<RequestPlace> {
        place_charging(queue, usage, &ledger()).await
    }

    async fn place_charging(queue: &Arc<RequestQueue>, usage: &Usage, ledger: &Ledger) -> Arc<RequestPlace> {
        let (tenant, owner) = (Tenant::new("tenant"), Owner::Address("here".into()));
        let permit = queue.turn(&owner, &tenant).await.unwrap();
        let (queue, ledger, stop) = (Arc::clone(queue), ledger.clone(), CancellationToken::new());
        let refusals = Refusals::default();
        let shared = Arc::new(Shared { service: "test", queue, ledger, owners: None, stop, refusals });
        RequestPlace::new(&shared, (tenant, owner), permit, usage)
    }

    /// A body of twenty bytes, each of which comes after a pause.
    fn slow(pause: Duration) -> Body {
        Body::from_stream(futures::stream::unfold(0, move |sent| async move {
            sleep(pause).await;
            (sent < 20).then_some((Ok::<_, Infallible>("x"), sent + 1))
        }))
    }

    async fn read(body: Body, usage: &Usage, place: &Arc<RequestPlace>) -> Result<usize, Option<Refusal>> {
        let body = read_within_limits(Request::new(body), usage, place).into_body();
        body.collect().await.map(|body| body.to_bytes().len()).map_err(|_| place.refusal())
    }

    #[tokio::test]
    async fn charges_what_arrives_and_keeps_what_is_declared() {
        let [usage, three_bytes] = [Usage::default(), Usage::default()];
        let place = place(&queue(), &usage).await;
        let request = Request::new(Body::new(Boastful(Full::from("abc"))));
        let body = read_within_limits(request, &usage, &place).into_body();
        assert_eq!((body.size_hint().exact(), usage.fuel()), (Some(u64::MAX - 2), 0));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        three_bytes.add_bytes(3);
        assert_eq!(usage.fuel(), three_bytes.fuel());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_given_up() {
        let (queue, usage) = (queue(), Usage::default());
        for (pause_ms, expected) in
            [(200, Ok(20)), (1000, Err(Some(Refusal::BodyTooSlow))), (6000, Err(Some(Refusal::BodyTooSlow)))]
        {
            let place = place(&queue, &usage).await;
            let body = slow(Duration::from_millis(pause_ms));
            assert_eq!(read(body, &usage, &place).await, expected, "{pause_ms} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_pause_once_its_response_has_begun() {
        let usage = Usage::default();
        let place = place(&queue(), &usage).await;
        let body = read_within_limits(Request::new(slow(Duration::from_secs(60))), &usage, &place).into_body();
        let mut body = pin!(body.collect());
        assert!(poll!(&mut body).is_pending());
        drop(place);
        assert_eq!(body.await.unwrap().to_bytes().len(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn another_request_runs_while_a_body_is_awaited_but_not_with_it() {
        let (queue, usage) = (queue(), Usage::default());
        let first = place(&queue, &usage).await;
        let mut reading = pin!(read(slow(Duration::from_secs(1)), &usage, &first));
        assert!(poll!(&mut reading).is_pending());
        // The second gets its turn although the first has not ended.
        let second = tokio::select! { _ = &mut reading => None, second = place(&queue, &usage) => Some(second) };
        assert!(second.is_some());
        assert_eq!(reading.await, Err(Some(Refusal::TimedOut)), "its place is taken when the body comes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_charged_until_its_request_ends() {
        let (queue, usage, ledger) = (queue(), Usage::default(), ledger());
        let budget = Arc::clone(&ledger.bodies);
        let first = place_charging(&queue, &usage, &ledger).await;
        assert_eq!(read(Body::from("small"), &usage, &first).await, Ok(5));
        assert_eq!(budget.used(), 0, "its place bounds it");
        assert_eq!(read(Body::from(vec![b'x'; 100_000]), &usage, &first).await, Ok(100_000));
        assert_eq!(budget.used(), 100_000 + PART_BYTES);
        drop(first);
        assert_eq!(budget.used(), 0);
        let waiting = place_charging(&queue, &usage, &ledger).await;
        assert_eq!(read(slow(Duration::from_millis(200)), &usage, &waiting).await, Ok(20));
        assert_eq!(budget.used(), 16 * 1024, "it has waited without its place");
    }

    #[tokio::test]
    async fn a_body_above_the_budget_is_refused() {
        let (queue, usage) = (queue(), Usage::default());
        let settings = BudgetSettings { body_bytes_per_owner_max: 100_000, ..BudgetSettings::default() };
        let place = place_charging(&queue, &usage, &Ledger::new(&settings)).await;
        let refusal = read(Body::from(vec![b'x'; 100_000]), &usage, &place).await.unwrap_err();
        assert!(matches!(refusal, Some(Refusal::Budget(_))), "{refusal:?}");
    }

    #[test]
    fn usage_does_not_wrap() {
        let usage = Usage::default();
        (0..2).for_each(|_| usage.add_bytes(u64::MAX));
        assert_eq!(usage.fuel(), u64::MAX);
    }
}
