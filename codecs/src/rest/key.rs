//! The key of the codec service.

use std::{path::Path, sync::Arc};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};

use server::{
    secret_file::{SecretFile, SecretFileError},
    usage::Usage,
};

use super::{Service, error::RestError};
use crate::{Error, OpenError};

const SCHEME: &[u8] = b"Bearer ";
/// Minimum length of a key, in bytes.
const BYTES_MIN: usize = 16;

/// The file of a secret that requests bring, which may be replaced while the service runs.
pub(crate) struct Key(SecretFile);

impl Key {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let file = SecretFile::open(path).map_err(|error| match error {
            SecretFileError::Unreadable { path, source } => OpenError::KeyFile { path, source },
            SecretFileError::Empty { path } => OpenError::KeyTooShort(path),
        })?;
        let is_strong = is_strong(file.current().expose());
        is_strong.then_some(Self(file)).ok_or_else(|| OpenError::KeyTooShort(path.to_owned()))
    }

    /// Fails without the key, and while nobody can say which one that is.
    fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        let presented = presented(headers).ok_or(Error::Unauthenticated)?;
        let key = self.0.verified().filter(|key| is_strong(key.expose())).ok_or(Error::Unverified)?;
        verify_slices_are_equal(presented, key.expose().as_bytes()).map_err(|_| Error::Unauthenticated)
    }
}

/// Returns true if a text is one word that nobody guesses.
fn is_strong(key: &str) -> bool {
    key.len() >= BYTES_MIN && !key.contains(char::is_whitespace)
}

fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, key) = value.as_bytes().split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(key)
}

/// Refuses a request without the key, if there is one.
pub(super) async fn check(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    if let Some(key) = &service.key {
        if let Err(error) = key.check(request.headers()) {
            return RestError::from(error).into_response();
        }
        Usage::in_extensions(request.extensions()).set_key_holder();
    }
    next.run(request).await
}
