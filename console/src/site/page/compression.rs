//! Compresses pages, and the files that they load, on their way to browsers: slow links carry them in a fraction of the
//! time.

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use miniz_oxide::deflate::compress_to_vec_zlib;
use server::site::{DEFLATE, takes_deflate};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Less is not worth it.
const BYTES_MIN: u64 = 1 << 10;
/// Nothing is longer: a page that is shows a form, whose size is limited, in several forms.
const BYTES_MAX: u64 = 32 << 20;
/// More effort saves little, and a page of a large function would take long.
const LEVEL: u8 = 4;

/// Compresses texts whose length is known, which streams of events and downloads that go on for long are not.
///
/// Nothing else is needed against attacks such as BREACH, which read a secret from the length of answers that have both
/// the secret and what the attacker has put into the request. Other sites can only cause requests that say so, and the
/// answers to these are not compressed. Besides, pages have no token: forms are told apart by the headers of browsers.
pub(in crate::site) async fn compress(request: Request, next: Next) -> Response {
    let may_pack = takes_deflate(request.headers()) && is_from_here(request.headers());
    let response = next.run(request).await;
    if !may_pack || !is_worth_it(&response) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(plain) = to_bytes(body, BYTES_MAX as usize).await else {
        // It was in memory already.
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let copy = plain.clone();
    let packed = tokio::task::spawn_blocking(move || compress_to_vec_zlib(&copy, LEVEL)).await;
    // It cannot fail. If it did, the page would go out as it is.
    let Ok(packed) = packed else { return Response::from_parts(parts, Body::from(plain)) };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(DEFLATE));
    parts.headers.append(header::VARY, HeaderValue::from_static("accept-encoding, sec-fetch-site"));
    Response::from_parts(parts, Body::from(packed))
}

/// Returns true if a page of this site caused a request, or the user did by an address or a bookmark. Browsers do not say
/// so without TLS, except on their own machine.
fn is_from_here(headers: &HeaderMap) -> bool {
    headers.get(SITE).is_some_and(|site| site == "same-origin" || site == "none")
}

fn is_worth_it(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_text = kind.is_some_and(|kind| kind.starts_with("text/"));
    let length = response.body().size_hint().exact();
    is_text
        && !response.headers().contains_key(header::CONTENT_ENCODING)
        && length.is_some_and(|length| (BYTES_MIN..=BYTES_MAX).contains(&length))
}
