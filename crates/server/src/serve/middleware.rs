//! Middleware around every request: an id, limits, a log line, metrics, and a response even after a panic.

mod grpc_timeout;
mod unread_body;

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
use types::{Kind, Kinded, Random};

use self::unread_body::UnreadBodies;
use super::{
    HttpService, IsStream, NeedsCredential, Server,
    admission::{AdmissionControl, RETRY_AFTER_S, Refusal},
    metrics,
};
use crate::{
    auth::{AuthError, credential_header},
    error::status::{self, INTERNAL},
    http::error_response::{ErrorFormat, ErrorResponse},
};

/// The header with the request id, by which the log is searched.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Start of tonic's `grpc-message` for a message that does not decode.
const UNDECODABLE: &[u8] = b"failed%20to%20decode%20Protobuf%20message";

/// Maximum length of an error text of axum's, in bytes. It is a sentence.
const REFUSAL_BYTES_MAX: usize = 4096;

struct Middleware {
    name: &'static str,
    error_format: ErrorFormat,
    random: Arc<dyn Random>,
    admission: AdmissionControl,
    needs_credential: Option<NeedsCredential>,
    is_stream: Option<IsStream>,
    unread_bodies: UnreadBodies,
    body_bytes_max: usize,
    timeout: Duration,
}

#[derive(Clone, Copy)]
enum Protocol {
    Rest,
    Grpc,
}

impl Protocol {
    /// gRPC takes HTTP/2 and the path of a method, too: the content type alone is only a claim of the client.
    fn of(request: &Request) -> Self {
        let says_grpc = || {
            let content_type = request.headers().get(header::CONTENT_TYPE);
            content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
        };
        let is_grpc = request.version() == Version::HTTP_2 && names_a_method(request.uri().path()) && says_grpc();
        if is_grpc { Self::Grpc } else { Self::Rest }
    }

    fn refuse(self, error_format: ErrorFormat, kind: Kind, message: impl Into<String>) -> Response {
        match self {
            Self::Rest => ErrorResponse::new(error_format, kind, message).into_response(),
            Self::Grpc => Status::new(status::grpc(kind), message).into_http(),
        }
    }
}

/// Wraps the service's router, and adds responses for unknown paths and methods.
pub(super) fn wrap(service: HttpService, server: &Server) -> Router {
    let middleware = Arc::new(Middleware {
        name: service.name,
        error_format: service.error_format,
        random: Arc::clone(&server.random),
        admission: AdmissionControl::new(service.name, server, service.verify_component),
        needs_credential: service.needs_credential,
        is_stream: service.is_stream,
        unread_bodies: UnreadBodies::new(),
        body_bytes_max: server.settings.body_bytes_max,
        timeout: Duration::from_millis(server.settings.request_timeout_ms),
    });
    let error_format = service.error_format;
    service
        .router
        .fallback(async move |request: Request| not_found(error_format, &request))
        .method_not_allowed_fallback(async move || method_not_allowed(error_format))
        // The middleware limits REST bodies, and tonic limits gRPC messages. This is for a REST handler that is called
        // as if it were gRPC.
        .layer(DefaultBodyLimit::max(server.settings.body_bytes_max))
        .layer(from_fn_with_state(middleware, pass))
}

async fn pass(
    State(middleware): State<Arc<Middleware>>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let id = format!("{:016x}", u64::from_be_bytes(middleware.random.array()));
    let method = request.method().clone();
    let route = route.as_ref().map_or("none", MatchedPath::as_str).to_owned();
    let span = tracing::info_span!("request", id, service = middleware.name, %method, route);
    let started = Instant::now();
    let mut response = middleware.response(request, next).instrument(span.clone()).await;
    let (elapsed, status) = (started.elapsed(), response.status());
    span.in_scope(|| {
        tracing::debug!(status = status.as_u16(), elapsed_us = elapsed.as_micros() as u64, "request finished");
    });
    metrics::answered(middleware.name, route, status.as_u16(), elapsed);
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

impl Middleware {
    /// The service's response, or an error when it has none.
    async fn response(&self, request: Request, next: Next) -> Response {
        let protocol = Protocol::of(&request);
        let limit = grpc_timeout::of(request.headers()).map_or(self.timeout, |wanted| wanted.min(self.timeout));
        let response = async {
            let handled = async {
                let request = self.unread_bodies.drain_unread(request);
                let handled = self.admission.handle(request, |request| self.run(protocol, request, next));
                handled.await.unwrap_or_else(|refusal| self.refuse_turn(protocol, refusal))
            };
            let response = correct_undecodable(self.in_time(protocol, limit, handled).await);
            self.format_error(response).await
        };
        AssertUnwindSafe(response).catch_unwind().await.unwrap_or_else(|_| {
            // The panic hook has written the message to the standard error.
            tracing::error!("request failed: panic");
            protocol.refuse(self.error_format, Kind::Internal, INTERNAL)
        })
    }

    async fn run(&self, protocol: Protocol, request: Request, next: Next) -> Response {
        if !has_one_host(&request) {
            return protocol.refuse(self.error_format, Kind::Invalid, "header `host` not valid: send it once");
        }
        if self.lacks_credential(&request) {
            return protocol.refuse(self.error_format, Kind::Unauthenticated, AuthError::Missing.to_string());
        }
        match protocol {
            Protocol::Rest => match self.bounded(request) {
                Ok(request) => next.run(request).await,
                Err(error) => error.into_response(),
            },
            // A stream may be long; tonic limits each message of it.
            Protocol::Grpc => next.run(request).await,
        }
    }

    /// Returns true if a request would have its body read only to be refused, because it has no credential.
    fn lacks_credential(&self, request: &Request) -> bool {
        let is_route = || request.extensions().get::<MatchedPath>().is_some();
        !request.body().is_end_stream()
            && credential_header(request.headers()).is_none()
            && is_route()
            && self.needs_credential.is_some_and(|needs| needs(request.method(), request.uri().path()))
    }

    /// The response to a request that is not handled because too many wait.
    fn refuse_turn(&self, protocol: Protocol, refusal: Refusal) -> Response {
        let mut response = protocol.refuse(self.error_format, refusal.kind(), refusal.to_string());
        // Over gRPC, this is metadata.
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        response
    }

    /// Limits the body, unless it is read part by part; refuses a request at once when its length is known to be above
    /// the limit.
    fn bounded(&self, request: Request) -> Result<Request, ErrorResponse> {
        if self.is_stream.is_some_and(|is_stream| is_stream(request.method(), request.uri().path())) {
            return Ok(request);
        }
        let limit = self.body_bytes_max;
        if request.body().size_hint().lower() > limit as u64 {
            let message = format!("body not valid: must have at most {limit} bytes");
            return Err(ErrorResponse::new(self.error_format, Kind::TooLarge, message));
        }
        Ok(request.map(|body| Body::new(Limited::new(body, limit))))
    }

    /// Waits for the response to begin; a stream may go on for longer.
    async fn in_time(&self, protocol: Protocol, limit: Duration, response: impl Future<Output = Response>) -> Response {
        tokio::time::timeout(limit, response).await.unwrap_or_else(|_| {
            tracing::warn!("request timed out");
            let message = format!("no response within {} ms: try again later", limit.as_millis());
            protocol.refuse(self.error_format, Kind::Timeout, message)
        })
    }

    /// Puts an error of axum's own, which is plain text, into the service's format.
    async fn format_error(&self, response: Response) -> Response {
        let status = response.status();
        let content_type = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !status.is_client_error() || !content_type.starts_with(b"text/plain") {
            return response;
        }
        let kind = if status == StatusCode::PAYLOAD_TOO_LARGE { Kind::TooLarge } else { Kind::Invalid };
        let text = axum::body::to_bytes(response.into_body(), REFUSAL_BYTES_MAX).await.unwrap_or_default();
        ErrorResponse::new(self.error_format, kind, String::from_utf8_lossy(&text)).with_status(status).into_response()
    }
}

/// Returns true if it is clear which host an HTTP/1.1 request is for: with two, a proxy may see another than the
/// service.
fn has_one_host(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    request.version() != Version::HTTP_11 || (hosts.next().is_some() && hosts.next().is_none())
}

/// Returns true if a path is `/package.Service/Method`; no REST path that takes a body has a dot in its first part.
fn names_a_method(path: &str) -> bool {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts.is_some_and(|(service, method)| service.contains('.') && !method.is_empty() && !method.contains('/'))
}

/// Changes tonic's code for a message that does not decode from `INTERNAL` to `INVALID_ARGUMENT`: the client sent it.
fn correct_undecodable(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let is_internal = headers.get(Status::GRPC_STATUS).is_some_and(|code| *code == "13");
    let text = headers.get(Status::GRPC_MESSAGE).map(HeaderValue::as_bytes).unwrap_or_default();
    if is_internal && text.starts_with(UNDECODABLE) {
        headers.insert(Status::GRPC_STATUS, HeaderValue::from(Code::InvalidArgument as i32));
    }
    response
}

fn not_found(error_format: ErrorFormat, request: &Request) -> Response {
    match Protocol::of(request) {
        Protocol::Rest => Protocol::Rest.refuse(error_format, Kind::NotFound, "path not found"),
        Protocol::Grpc => Protocol::Grpc.refuse(error_format, Kind::Unsupported, "method not found"),
    }
}

fn method_not_allowed(error_format: ErrorFormat) -> Response {
    ErrorResponse::new(error_format, Kind::Unsupported, "method not allowed")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}
