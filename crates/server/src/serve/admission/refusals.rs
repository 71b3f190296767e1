//! Holds refusals back, because clients that retry at once would otherwise use up the processors.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use store::{Buckets, Rate, TakenToken};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use tonic::{Code, Status};

/// Time for which a refusal is held back.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of refusals that are held back; further ones are sent at once.
const HELD_MAX: usize = 4096;
/// Rate at which one tenant's refusals by the service itself are sent at once: a person's mistakes are not slowed.
const RATE: Rate = Rate { per: Duration::from_millis(10), burst: 200 };

/// Counts the refusals of each tenant.
pub(super) struct Refusals {
    held: Semaphore,
    sent: Buckets<Arc<str>>,
    /// A clock that is set back does not concern them.
    started: Instant,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { held: Semaphore::new(HELD_MAX), sent: Buckets::default(), started: Instant::now() }
    }
}

impl Refusals {
    /// Holds a refusal back, unless too many are.
    pub(super) async fn pause(&self) {
        if let Ok(_held) = self.held.try_acquire() {
            sleep(PAUSE).await;
        }
    }

    /// Holds a refusal back if its tenant has had too many. Whoever sends wrong credentials makes us check each of them.
    pub(super) async fn pause_if_many(&self, tenant: &Arc<str>) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let TakenToken::Wait(_) = self.sent.take(tenant, RATE, now) {
            self.pause().await;
        }
    }
}

/// Returns true if the credential of a request was refused.
pub(super) fn is_unauthenticated(response: &Response) -> bool {
    response.status() == StatusCode::UNAUTHORIZED || grpc_code(response) == Some(Code::Unauthenticated)
}

/// Returns true if a request was refused in a way that makes clients try again: for its credential, or because of a
/// limit.
pub(super) fn invites_retries(response: &Response) -> bool {
    let is_limited = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let code = grpc_code(response);
    is_unauthenticated(response) || is_limited || matches!(code, Some(Code::ResourceExhausted | Code::Unavailable))
}

fn grpc_code(response: &Response) -> Option<Code> {
    response.headers().get(Status::GRPC_STATUS).map(HeaderValue::as_bytes).map(Code::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of these refusals that are sent at once.
    async fn at_once(refusals: &Refusals, tenant: &Arc<str>, count: usize) -> usize {
        let mut sent = 0;
        for _ in 0..count {
            let before = Instant::now();
            refusals.pause_if_many(tenant).await;
            sent += usize::from(before.elapsed().is_zero());
        }
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_of_one_tenant_are_slowed_and_those_of_others_are_not() {
        let (refusals, [hostile, honest]) = (Refusals::default(), ["hostile", "honest"].map(Arc::from));
        assert_eq!(at_once(&refusals, &hostile, 201).await, 200);
        assert_eq!(at_once(&refusals, &honest, 200).await, 200);
    }

    #[test]
    fn credentials_and_limits_invite_retries() {
        let answer = |status: StatusCode| {
            let mut response = Response::default();
            *response.status_mut() = status;
            response
        };
        for status in [401, 429, 503] {
            assert!(invites_retries(&answer(StatusCode::from_u16(status).unwrap())), "{status}");
        }
        for status in [200, 400, 403, 404, 409] {
            assert!(!invites_retries(&answer(StatusCode::from_u16(status).unwrap())), "{status}");
        }
        for code in [Code::Unauthenticated, Code::ResourceExhausted, Code::Unavailable] {
            assert!(invites_retries(&Status::new(code, "").into_http()), "{code}");
        }
    }
}
