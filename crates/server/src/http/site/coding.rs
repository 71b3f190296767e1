//! The coding in which pages and files are compressed.

use axum::http::{HeaderMap, header};

/// The coding that HTTP calls so: DEFLATE in the format of zlib.
pub const DEFLATE: &str = "deflate";

/// Returns true if a client takes [`DEFLATE`], as all browsers do. Whoever takes it with less than full weight gets none.
pub fn takes_deflate(asked: &HeaderMap) -> bool {
    let codings = asked.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|list| list.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case(DEFLATE))
}
