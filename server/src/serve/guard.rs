//! What stands around every request: an id, bounds, a line in the log, figures, and an answer whatever happens.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{DefaultBodyLimit, MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, StatusCode, Version, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http_body_util::Limited;
use tokio::time::Instant;
use tonic::{Code, Status};
use tracing::Instrument;
use types::{Kind, Random};

use super::{Server, Site, deadline};
use crate::{
    reply::{ErrorReply, Shape},
    status::{self, INTERNAL},
};

/// The header that names a request, for finding it in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How tonic's text begins, in a header, when a message does not decode.
const UNDECODABLE: &[u8] = b"failed%20to%20decode%20Protobuf%20message";

/// The most bytes that are read of a refusal of axum's own, which is a sentence.
const REFUSAL_BYTES_MAX: usize = 4096;

/// What the guard of one service knows.
struct Guard {
    name: &'static str,
    shape: Shape,
    random: Arc<dyn Random>,
    body_bytes_max: usize,
    timeout: Duration,
}

/// What a request speaks, and what its errors are told in.
#[derive(Clone, Copy)]
enum Protocol {
    Rest,
    Grpc,
}

impl Protocol {
    /// gRPC only where nothing speaks against it: the content type is but what a stranger says.
    fn of(request: &Request) -> Self {
        let says_grpc = || {
            let content_type = request.headers().get(header::CONTENT_TYPE);
            content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
        };
        let is_grpc = request.version() == Version::HTTP_2 && names_a_method(request.uri().path()) && says_grpc();
        if is_grpc { Self::Grpc } else { Self::Rest }
    }

    fn refuse(self, shape: Shape, kind: Kind, message: impl Into<String>) -> Response {
        match self {
            Self::Rest => ErrorReply::new(shape, kind, message).into_response(),
            Self::Grpc => Status::new(status::grpc(kind), message).into_http(),
        }
    }
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
        .fallback(async move |request: Request| not_found(shape, &request))
        .method_not_allowed_fallback(async move || method_not_allowed(shape))
        // The guard bounds bodies itself, but not those of gRPC, whose messages tonic bounds. A handler that takes one
        // for its own all the same reads no more of it than of any other.
        .layer(DefaultBodyLimit::max(server.settings.body_bytes_max))
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
        let protocol = Protocol::of(&request);
        let limit = deadline::of(request.headers()).map_or(self.timeout, |wanted| wanted.min(self.timeout));
        let answer = async {
            let request = match protocol {
                Protocol::Rest => match self.bounded(request) {
                    Ok(request) => request,
                    Err(refusal) => return refusal.into_response(),
                },
                // A stream may grow; tonic bounds each message of it.
                Protocol::Grpc => request,
            };
            let response = blame_the_sender(self.in_time(protocol, limit, next.run(request)).await);
            self.in_our_words(response).await
        };
        AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
            // What it said is on the standard error already: the panic hook wrote it.
            tracing::error!("a request failed through a panic");
            protocol.refuse(self.shape, Kind::Internal, INTERNAL)
        })
    }

    /// The request with a body that ends at the limit; refused at once when it says that it is larger.
    fn bounded(&self, request: Request) -> Result<Request, ErrorReply> {
        let limit = self.body_bytes_max;
        if request.body().size_hint().lower() > limit as u64 {
            let message = format!("body not valid: must have {limit} bytes at most");
            return Err(ErrorReply::new(self.shape, Kind::TooLarge, message));
        }
        Ok(request.map(|body| Body::new(Limited::new(body, limit))))
    }

    /// The answer if it begins in time; a stream may go on for longer.
    async fn in_time(&self, protocol: Protocol, limit: Duration, answer: impl Future<Output = Response>) -> Response {
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            tracing::warn!("a request took too long");
            let message = format!("no answer within {} ms: try again later", limit.as_millis());
            protocol.refuse(self.shape, Kind::Timeout, message)
        })
    }

    /// Tells a refusal of axum's own, which is plain text, in the shape of all others.
    async fn in_our_words(&self, response: Response) -> Response {
        let status = response.status();
        let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !status.is_client_error() || !content_type.starts_with(b"text/plain") {
            return response;
        }
        let kind = if status == StatusCode::PAYLOAD_TOO_LARGE { Kind::TooLarge } else { Kind::Invalid };
        let text = axum::body::to_bytes(response.into_body(), REFUSAL_BYTES_MAX).await.unwrap_or_default();
        ErrorReply::new(self.shape, kind, String::from_utf8_lossy(&text)).with_status(status).into_response()
    }

    fn request_id(&self) -> String {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        format!("{:016x}", u64::from_be_bytes(bytes))
    }
}

/// Whether a path is `/package.Service/Method`; no REST path that takes a body has a dot in its first part.
fn names_a_method(path: &str) -> bool {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts.is_some_and(|(service, method)| service.contains('.') && !method.is_empty() && !method.contains('/'))
}

/// Says that a message was not valid where tonic says that we failed: it cannot know that nobody but the sender wrote
/// bytes that are no such message.
fn blame_the_sender(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let is_ours = headers.get(Status::GRPC_STATUS).is_some_and(|code| *code == "13");
    let text = headers.get(Status::GRPC_MESSAGE).map(HeaderValue::as_bytes).unwrap_or_default();
    if is_ours && text.starts_with(UNDECODABLE) {
        headers.insert(Status::GRPC_STATUS, HeaderValue::from(Code::InvalidArgument as i32));
    }
    response
}

fn not_found(shape: Shape, request: &Request) -> Response {
    match Protocol::of(request) {
        Protocol::Rest => Protocol::Rest.refuse(shape, Kind::NotFound, "there is no such path here"),
        Protocol::Grpc => Protocol::Grpc.refuse(shape, Kind::Unsupported, "there is no such method here"),
    }
}

fn method_not_allowed(shape: Shape) -> Response {
    ErrorReply::new(shape, Kind::Unsupported, "this path does not have that method")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}
