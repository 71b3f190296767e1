//! Rules for the scopes, description and redirect URIs of an OAuth client.

use types::Scope;

use crate::{Error, LocalPath, Result};

const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
const URI_BYTES_MAX: usize = 500;
/// Schemes that would run code or open local data instead of redirecting.
const SCHEMES_REFUSED: [&str; 5] = ["javascript", "data", "file", "blob", "vbscript"];

/// Refuses anything but a list of general scopes.
pub(crate) fn check_scope(scope: &[Scope]) -> Result<()> {
    if !scope.is_empty() && scope.len() <= 5 && scope.iter().all(|scope| *scope == scope.general()) {
        return Ok(());
    }
    Err(Error::Invalid { what: "scope", must: "must name some of profile, apps, gateways, components and clients" })
}

pub(crate) fn check_description(text: &str) -> Result<()> {
    let plain = text.chars().all(|character| !character.is_control() || character == '\n');
    if plain && text.chars().count() <= DESCRIPTION_CHARACTERS_MAX {
        return Ok(());
    }
    Err(Error::Invalid { what: "description", must: "must have at most 1000 characters and no control characters" })
}

/// The operator's clients may also redirect to a path of this site.
pub(crate) fn check_own_uri(text: &str) -> Result<()> {
    let is_local = text.parse::<LocalPath>().is_ok() && !text.contains('#');
    if is_local { Ok(()) } else { check_uri(text) }
}

/// Codes are sent to this URI, so it must not leak them or run code.
pub(crate) fn check_uri(text: &str) -> Result<()> {
    let must = "must be an address such as https://example.com/callback or app://callback, without a fragment; \
                http only on localhost";
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['#', '@', '\\', '"', '<', '>']);
    let whole = is_scheme(scheme) && !authority.is_empty() && plain && text.len() <= URI_BYTES_MAX;
    if whole && !SCHEMES_REFUSED.contains(&scheme) && (scheme != "http" || is_local(authority)) {
        Ok(())
    } else {
        Err(Error::Invalid { what: "uri", must })
    }
}

fn is_scheme(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    first && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte))
}

/// Returns true if the authority is this machine, with or without a port.
fn is_local(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]") && port.bytes().all(|byte| byte.is_ascii_digit())
}
