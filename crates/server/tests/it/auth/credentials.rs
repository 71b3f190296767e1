//! Credentials in headers, valid and invalid.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use server::auth::{AuthError, credential_of};
use types::{ACCESS_KEY_BYTES_MAX, CREDENTIAL_BYTES_MAX, Credential, Kind, Kinded, Secret};

fn read(headers: &[(&'static str, &'static str)]) -> Result<Option<Credential>, AuthError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    credential_of(&map)
}

fn token(text: &str) -> Option<Credential> {
    Some(Credential::Token(Secret::new(text)))
}

fn key(text: &str) -> Option<Credential> {
    Some(Credential::Key(text.parse().unwrap()))
}

#[test]
fn finds_a_credential_in_every_header() {
    assert_eq!(read(&[]).unwrap(), None);
    let places = [
        ([("authorization", "Bearer t")].as_slice(), token("t")),
        (&[("authorization", "bearer t")], token("t")),
        (&[("authorization", "KEY i.k")], key("i.k")),
        (&[("token", "t")], token("t")),
        (&[("key", "i.k")], key("i.k")),
        (&[("key", "k")], Some(Credential::from_key("k").unwrap())),
        (&[("grpc-metadata-token", "t")], token("t")),
        (&[("grpc-metadata-key", "i.k")], key("i.k")),
        (&[("token", "t"), ("key", "i.k")], token("t")),
        (&[("token", ""), ("key", "i.k")], key("i.k")),
        (&[("cookie", "token=t; session=s")], None),
    ];
    for (headers, expected) in places {
        assert_eq!(read(headers).unwrap(), expected, "{headers:?}");
    }
}

#[test]
fn refuses_malformed_credentials_as_unauthenticated() {
    let headers = [
        ("authorization", "t"),
        ("authorization", "Basic YTpi"),
        ("authorization", "Key no dot"),
        ("authorization", "Bearer "),
        ("key", "a.b.c"),
    ];
    for header in headers {
        assert_eq!(read(&[header]).unwrap_err().kind(), Kind::Unauthenticated, "{header:?}");
    }
}

// Conformance: One template for each AppEUI; `last_seen` is not the client's to set
#[test]
fn refuses_repeated_headers_as_invalid_unless_they_have_one_token() {
    assert!(read(&[("token", "t"), ("token", "t")]).unwrap().is_some());
    for (name, value, other) in
        [("authorization", "Bearer t", "Bearer t"), ("token", "t", "u"), ("grpc-metadata-key", "i.k", "i.k")]
    {
        let error = read(&[(name, value), (name, other)]).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(read(&[("authorization", "Bearer \u{fc}")]).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn refuses_credentials_that_are_too_long_in_every_header() {
    let (token, key) = ("t".repeat(CREDENTIAL_BYTES_MAX + 1), format!("i.{}", "k".repeat(ACCESS_KEY_BYTES_MAX)));
    let (bearer, scheme_key) = (format!("Bearer {token}"), format!("Key {key}"));
    for (name, value) in [
        ("authorization", &bearer),
        ("authorization", &scheme_key),
        ("token", &token),
        ("grpc-metadata-token", &token),
        ("key", &key),
        ("grpc-metadata-key", &key),
    ] {
        let error = read(&[(name, value.clone().leak())]).unwrap_err();
        assert_eq!(error.kind(), Kind::Unauthenticated, "{name}");
        assert!(error.to_string().contains("bytes, at most"), "{error}");
    }
}
