//! Validation and display of registered clients.
//!
//! Users rely on what a client's description said. If its owner changes its redirect URI or scopes, the operator has to
//! accept it again.

use api::rest::account::{self as body, ClientUpdate};
use types::{Scope, UserId};

use super::client::{Client, GrantType, Standing};
use crate::{Error, LocalPath, Result};

/// Maximum length of a description, in characters.
const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
/// Maximum length of a redirect URI, in bytes.
const URI_BYTES_MAX: usize = 500;
/// Schemes that would run code in the browser.
const SCHEMES_REFUSED: [&str; 5] = ["javascript", "data", "file", "blob", "vbscript"];

impl Client {
    /// The public view of the client.
    pub(crate) fn shown(&self) -> body::Client {
        body::Client {
            name: self.id.clone(),
            description: self.description.clone(),
            secret: None,
            uri: self.redirect_uris.first().cloned().unwrap_or_default(),
            grants: self.grants.iter().map(|grant| grant.as_str().to_owned()).collect(),
            scope: self.scope.clone(),
            accepted: self.standing == Standing::Accepted,
            rejected: self.standing == Standing::Rejected,
            official: self.first_party,
        }
    }

    /// Whether this user registered it and did not delete it.
    pub(crate) fn is_of(&self, user_id: &UserId) -> bool {
        self.owner.as_ref() == Some(user_id) && self.standing != Standing::Deleted
    }

    /// Applies an update. Unless only the description changed, the client then needs approval again.
    pub(crate) fn update(&mut self, update: ClientUpdate) -> Result<()> {
        let before = (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone());
        if let Some(description) = update.description {
            check_description(&description)?;
            self.description = description;
        }
        if let Some(uri) = update.uri {
            check_uri(&uri)?;
            self.redirect_uris = vec![uri];
        }
        if let Some(grants) = update.grants {
            self.grants = grants.iter().map(|grant| grant_for_all(grant)).collect::<Result<_>>()?;
        }
        if let Some(scope) = update.scope {
            check_scope(&scope)?;
            self.scope = scope;
        }
        if before != (self.redirect_uris.clone(), self.grants.clone(), self.scope.clone()) {
            self.standing = Standing::Undecided;
        }
        Ok(())
    }
}

/// The password grant is for first-party clients only.
fn grant_for_all(text: &str) -> Result<GrantType> {
    let must = "must be authorization_code and refresh_token, or one of them";
    let grant = text.parse().ok().filter(|grant| *grant != GrantType::Password);
    grant.ok_or(Error::Invalid { what: "grants", must })
}

/// Rejects an empty or duplicate list, and scopes of entities.
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

/// First-party clients may also redirect to a path of this site.
pub(crate) fn check_own_uri(text: &str) -> Result<()> {
    let is_local = text.parse::<LocalPath>().is_ok() && !text.contains('#');
    if is_local { Ok(()) } else { check_uri(text) }
}

/// Codes are sent to this URI: it must be protected in transit, and must not run code.
pub(crate) fn check_uri(text: &str) -> Result<()> {
    let must = "must be an address such as https://example.com/callback or app://callback, without a fragment; \
                http only on localhost";
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let shown = text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains(['#', '@', '\\', '"', '<', '>']);
    let whole = is_scheme(scheme) && !authority.is_empty() && shown && text.len() <= URI_BYTES_MAX;
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

/// Whether it is localhost, on any port.
fn is_local(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]") && port.bytes().all(|byte| byte.is_ascii_digit())
}
