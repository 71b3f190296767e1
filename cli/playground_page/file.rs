//! A file of the page: the hash of its content, by which browsers ask whether it is still the same, and its compressed
//! form.

use std::sync::{Arc, OnceLock};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use server::site::{DEFLATE, takes_deflate};
use sha2::{Digest, Sha256};

/// The sources that the page may load: its own files, and nothing inline. The worker's script has the same policy.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
     connect-src 'self'; worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// The headers of every file. A new version of the program may have other files at the same addresses.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-cache"),
    (header::VARY, "accept-encoding"),
];

/// More effort saves less than a hundredth.
const LEVEL: u8 = 6;

#[derive(Clone)]
pub(super) struct File {
    kind: &'static str,
    content: Bytes,
    hash: String,
    /// The compressed content, once somebody has asked for it.
    packed: Arc<OnceLock<Bytes>>,
}

impl File {
    pub(super) fn new(kind: &'static str, content: Bytes) -> Self {
        let hash = hex::encode(Sha256::digest(&content));
        Self { kind, content, hash, packed: Arc::default() }
    }

    pub(super) fn answer(&self, asked: &HeaderMap) -> Response {
        let is_packed = takes_deflate(asked);
        let tag = if is_packed { format!("\"{}-{DEFLATE}\"", self.hash) } else { format!("\"{}\"", self.hash) };
        let is_known = asked.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let headers = (HEADERS, [(header::ETAG, tag)]);
        if is_known {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let kind = [(header::CONTENT_TYPE, self.kind)];
        match is_packed {
            true => (headers, kind, [(header::CONTENT_ENCODING, DEFLATE)], self.packed()).into_response(),
            false => (headers, kind, self.content.clone()).into_response(),
        }
    }

    fn packed(&self) -> Bytes {
        let pack = || Bytes::from(miniz_oxide::deflate::compress_to_vec_zlib(&self.content, LEVEL));
        self.packed.get_or_init(pack).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_file_is_compressed_for_whoever_takes_that() {
        let file = File::new("text/javascript", Bytes::from("a".repeat(1000)));
        for (accepted, coding) in
            [("gzip, Deflate, br", Some("deflate")), ("gzip", None), ("deflate;q=0", None), ("*", None)]
        {
            let answer = file.answer(&asking(header::ACCEPT_ENCODING, accepted));
            let found = answer.headers().get(header::CONTENT_ENCODING).map(|coding| coding.to_str().unwrap());
            assert_eq!(found, coding, "{accepted}");
        }
        let packed = miniz_oxide::inflate::decompress_to_vec_zlib(&file.packed()).unwrap();
        assert_eq!(packed, file.content);
    }

    #[test]
    fn each_form_of_a_file_has_its_own_tag() {
        let file = File::new("text/javascript", Bytes::from("text"));
        let tag = |headers: &HeaderMap| file.answer(headers).headers()[header::ETAG].clone();
        let (packed, plain) = (tag(&asking(header::ACCEPT_ENCODING, "deflate")), tag(&HeaderMap::new()));
        assert_ne!(packed, plain);
        for (known, status) in [(plain, StatusCode::NOT_MODIFIED), (packed, StatusCode::OK)] {
            let asked = HeaderMap::from_iter([(header::IF_NONE_MATCH, known)]);
            assert_eq!(file.answer(&asked).status(), status);
        }
    }
}
