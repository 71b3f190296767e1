//! Error responses, described once per status and referred to by operations.

use aide::{
    generate::GenContext,
    openapi::{Operation, ReferenceOr, Response, StatusCode as Code},
};
use api::rest::{account::ErrorBody, handler::GatewayError};
use axum::http::StatusCode;
use schemars::Schema;

use super::{response, schema};
use crate::http::error_response::ErrorFormat;

/// Every status that is described, with the name of its response.
const RESPONSES: [(StatusCode, &str, &str); 9] = [
    (StatusCode::BAD_REQUEST, "Invalid", "The request is malformed or breaks a rule."),
    (StatusCode::UNAUTHORIZED, "Unauthenticated", "The credential is missing or not valid."),
    (StatusCode::FORBIDDEN, "Denied", "The credential is valid, but lacks the scope or right."),
    (StatusCode::NOT_FOUND, "NotFound", "The resource does not exist, or the caller may not see it."),
    (StatusCode::CONFLICT, "Conflict", "The id or name is taken, or a concurrent change interfered."),
    (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "The body is too large."),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "ContentType", "The content type is not supported."),
    (StatusCode::TOO_MANY_REQUESTS, "TooMany", "A rate limit was reached."),
    (StatusCode::SERVICE_UNAVAILABLE, "Unavailable", "A service that this one depends on is unavailable: try again."),
];

/// Adds the usual error response with this status, unless the operation describes one of its own.
pub fn refuse(operation: &mut Operation, status: StatusCode) {
    let Some((_, name, _)) = RESPONSES.iter().find(|(known, ..)| *known == status) else { return };
    let reference = format!("#/components/responses/{name}");
    let responses = &mut operation.responses.get_or_insert_default().responses;
    let response = ReferenceOr::Reference { reference, summary: None, description: None };
    responses.entry(Code::Code(status.as_u16())).or_insert(response);
}

pub(super) fn body(context: &mut GenContext, shape: ErrorFormat) -> Schema {
    match shape {
        ErrorFormat::Account => schema::for_response::<ErrorBody>(context),
        ErrorFormat::GrpcGateway => schema::for_response::<GatewayError>(context),
    }
}

/// The error responses with these statuses, by name.
pub(super) fn responses<M>(used: &[Code], body: &Schema) -> M
where
    M: FromIterator<(String, ReferenceOr<Response>)>,
{
    let used = RESPONSES.iter().filter(|(status, ..)| used.contains(&Code::Code(status.as_u16())));
    let named = used.map(|(status, name, description)| {
        let response = response::with_body(description, body.clone());
        ((*name).to_owned(), ReferenceOr::Item(response::with_headers(response, headers(*status))))
    });
    named.collect()
}

fn headers(status: StatusCode) -> &'static [response::Header] {
    match status {
        StatusCode::TOO_MANY_REQUESTS => &[
            ("Retry-After", "integer", "When to try again, in seconds."),
            ("RateLimit-Policy", "string", "The limit, as in the IETF draft for rate limits."),
            ("RateLimit", "string", "What remains of the limit."),
        ],
        StatusCode::SERVICE_UNAVAILABLE => &[("Retry-After", "integer", "When to try again, in seconds.")],
        _ => &[],
    }
}
