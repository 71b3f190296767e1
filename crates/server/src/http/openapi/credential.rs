//! Credentials as an OpenAPI document describes them.

use aide::openapi::ApiKeyLocation;
pub use aide::openapi::SecurityScheme;

/// A token after `Bearer`.
pub fn bearer(description: &str) -> SecurityScheme {
    http("bearer", Some("JWT"), description)
}

/// A name and a secret after `Basic`.
pub fn basic(description: &str) -> SecurityScheme {
    http("basic", None, description)
}

/// A header that holds a credential of our own.
pub fn header(name: &str, description: &str) -> SecurityScheme {
    api_key(ApiKeyLocation::Header, name, description)
}

/// A cookie that holds a credential of our own.
pub fn cookie(name: &str, description: &str) -> SecurityScheme {
    api_key(ApiKeyLocation::Cookie, name, description)
}

fn http(scheme: &str, bearer_format: Option<&str>, description: &str) -> SecurityScheme {
    SecurityScheme::Http {
        scheme: scheme.to_owned(),
        bearer_format: bearer_format.map(str::to_owned),
        description: Some(description.to_owned()),
        extensions: [].into(),
    }
}

fn api_key(location: ApiKeyLocation, name: &str, description: &str) -> SecurityScheme {
    SecurityScheme::ApiKey {
        location,
        name: name.to_owned(),
        description: Some(description.to_owned()),
        extensions: [].into(),
    }
}
