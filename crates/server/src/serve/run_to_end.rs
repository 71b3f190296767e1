//! Runs requests that may change something to their end, also when their client hangs up or their time is over.
//!
//! hyper drops the future of a request whose connection ends. A change of several steps would then stop in the middle.

use std::{error::Error, iter::successors, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use http_body_util::LengthLimitError;
use tokio::time::timeout;
use tracing::Instrument;
use types::Kind;

use crate::error::status;

use super::admission::RequestPlace;

/// Maximum time for which a request may run on without its client. Each call of a store ends much earlier.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Lets each request that may change something run to its end in a task of its own, once its body has arrived.
///
/// Bodies above `body_bytes_max` reach the handler as an error of that body.
pub fn run_to_end(router: Router, body_bytes_max: usize) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| async move {
        if request.method().is_safe() {
            return next.run(request).await;
        }
        match arrived(request, body_bytes_max).await {
            Ok(request) => run(request, next).await,
            Err(kind) => status::http(kind).into_response(),
        }
    }))
}

/// The request with its whole body: a client that hangs up while it sends has not asked for anything, whether or not
/// anybody reads the body.
async fn arrived(request: Request, body_bytes_max: usize) -> Result<Request, Kind> {
    let (head, body) = request.into_parts();
    let body = match to_bytes(body, body_bytes_max).await {
        Ok(bytes) => Body::from(bytes),
        Err(error) if is_too_long(&error) => {
            Body::from_stream(futures::stream::iter([Err::<Vec<u8>, _>(error.into_inner())]))
        }
        Err(_) => return Err(Kind::Invalid),
    };
    Ok(Request::from_parts(head, body))
}

fn is_too_long(error: &axum::Error) -> bool {
    successors(error.source(), |error| (*error).source()).any(<dyn Error>::is::<LengthLimitError>)
}

async fn run(request: Request, next: Next) -> Response {
    // The task keeps it, so that a client that hangs up does not get a turn for another request.
    let place = RequestPlace::of(request.extensions());
    let response = async move {
        let _place = place;
        timeout(TIME_MAX, next.run(request)).await
    };
    match tokio::spawn(response.in_current_span()).await {
        Ok(Ok(response)) => response,
        // The service's own limit is lower, so nobody waits any more.
        Ok(Err(_)) => status::http(Kind::Timeout).into_response(),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The process ends.
            Err(_) => status::http(Kind::Unavailable).into_response(),
        },
    }
}
