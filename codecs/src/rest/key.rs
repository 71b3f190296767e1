//! The key of the codec service.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};

use server::usage::Usage;

use super::{Service, error::RestError};
use crate::Error;

const SCHEME: &[u8] = b"Bearer ";
/// Minimum length of a key, in bytes.
const BYTES_MIN: usize = 16;

/// A secret that requests bring. It does not print itself.
pub(crate) struct Key(String);

impl Key {
    /// The key in the text of a file; none if it is too short, or several words.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let key = text.trim();
        (key.len() >= BYTES_MIN && !key.contains(char::is_whitespace)).then(|| Self(key.to_owned()))
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, presented)) = value.as_bytes().split_at_checked(SCHEME.len()) else { return false };
        scheme.eq_ignore_ascii_case(SCHEME) && verify_slices_are_equal(presented, self.0.as_bytes()).is_ok()
    }
}

/// Refuses a request without the key, if there is one.
pub(super) async fn check(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    if let Some(key) = &service.key {
        if !key.is_in(request.headers()) {
            return RestError::from(Error::Unauthenticated).into_response();
        }
        Usage::in_extensions(request.extensions()).set_key_holder();
    }
    next.run(request).await
}
