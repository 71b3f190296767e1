//! What stands around every request: an id, bounds, a line in the log, figures, and an answer whatever happens.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http_body_util::Limited;
use tokio::time::Instant;
use tonic::{Code, Status};
use tracing::Instrument;
use types::{Kind, Random};

use super::{Server, Site};
use crate::{
    reply::{ErrorReply, Shape},
    status::INTERNAL,
};

/// The header that names a request, for finding it in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the guard of one service knows.
struct Guard {
    name: &'static str,
    shape: Shape,
    random: Arc<dyn Random>,
    body_bytes_max: usize,
    timeout: Duration,
}

/// The router of `site` with the guard around it, and with answers for what it has no route for.
pub(super) fn wrap(site: Site, server: &Server) -> Router {
    let guard = Arc::new(Guard {
        name: site.name,
        shape: site.shape,
        random: Arc::clone(&server.random),
        body_bytes_max: server.settings.body_bytes_max,
        timeout: Duration::from_millis(server.settings.request_timeout_ms),
    });
    let shape = site.shape;
    site.router
        .fallback(async move |request: Request| not_found(shape, request.headers()))
        .method_not_allowed_fallback(async move || method_not_allowed(shape))
        // The guard bounds the body itself, so that what is no JSON is bounded too.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(guard, pass))
}

async fn pass(State(guard): State<Arc<Guard>>, route: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let id = guard.request_id();
    let method = request.method().clone();
    let route = route.as_ref().map_or("none", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id, service = guard.name, %method, route);
    let started = Instant::now();
    let mut response = guard.answer(request, next).instrument(span.clone()).await;
    let (elapsed, status) = (started.elapsed(), response.status());
    span.in_scope(|| tracing::debug!(status = status.as_u16(), elapsed_us = elapsed.as_micros() as u64, "answered"));
    let labels = [("service", guard.name.to_owned()), ("route", route)];
    metrics::histogram!("airlock_request_seconds", &labels).record(elapsed);
    metrics::counter!("airlock_requests_total", "service" => guard.name, "status" => status.as_str().to_owned())
        .increment(1);
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

impl Guard {
    /// The answer of the service, or ours when it has none.
    async fn answer(&self, request: Request, next: Next) -> Response {
        let is_grpc = is_grpc(request.headers());
        let answer = async {
            if is_grpc {
                // A stream may last and grow; tonic bounds each message of it.
                return next.run(request).await;
            }
            match self.bounded(request) {
                Ok(request) => self.in_time(next.run(request)).await,
                Err(refusal) => refusal.into_response(),
            }
        };
        match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                // What it said is on the standard error already: the panic hook wrote it.
                tracing::error!("a request failed through a panic");
                if is_grpc {
                    return Status::internal(INTERNAL).into_http();
                }
                self.refuse(Kind::Internal, INTERNAL).into_response()
            }
        }
    }

    /// The request with a body that ends at the limit; refused at once when it says that it is larger.
    fn bounded(&self, request: Request) -> Result<Request, ErrorReply> {
        let limit = self.body_bytes_max;
        if request.body().size_hint().lower() > limit as u64 {
            return Err(self.refuse(Kind::TooLarge, format!("body not valid: must have {limit} bytes at most")));
        }
        Ok(request.map(|body| Body::new(Limited::new(body, limit))))
    }

    async fn in_time(&self, answer: impl Future<Output = Response>) -> Response {
        let limit = self.timeout;
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            tracing::warn!("a request took too long");
            self.refuse(Kind::Timeout, format!("no answer within {} ms: try again later", limit.as_millis()))
                .into_response()
        })
    }

    fn refuse(&self, kind: Kind, message: impl Into<String>) -> ErrorReply {
        ErrorReply::new(self.shape, kind, message)
    }

    fn request_id(&self) -> String {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        format!("{:016x}", u64::from_be_bytes(bytes))
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/grpc"))
}

fn not_found(shape: Shape, headers: &HeaderMap) -> Response {
    if is_grpc(headers) {
        return Status::new(Code::Unimplemented, "there is no such method here").into_http();
    }
    ErrorReply::new(shape, Kind::NotFound, "there is no such path here").into_response()
}

fn method_not_allowed(shape: Shape) -> Response {
    ErrorReply::new(shape, Kind::Unsupported, "this path does not have that method")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}
