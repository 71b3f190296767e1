//! A file that is compiled into the program.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};

const IMMUTABLE: (HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
const NOSNIFF: (HeaderName, HeaderValue) = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// A style sheet, script or picture. Its URL contains a fingerprint of the content, so browsers can keep it forever.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    path: &'static str,
    content_type: &'static str,
    content: &'static str,
    fingerprint: u64,
}

impl Asset {
    /// A file with its path on the site and its content type.
    pub const fn new(path: &'static str, content_type: &'static str, content: &'static str) -> Self {
        Self { path, content_type, content, fingerprint: fingerprint(content.as_bytes()) }
    }

    /// Its path on the site.
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the link for pages: the path with the fingerprint.
    pub fn link(&self) -> String {
        format!("{}?{:016x}", self.path, self.fingerprint)
    }
}

impl IntoResponse for Asset {
    fn into_response(self) -> Response {
        let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        ([content_type, IMMUTABLE, NOSNIFF], self.content).into_response()
    }
}

/// FNV-1a, which is enough to tell versions of a file apart.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}
