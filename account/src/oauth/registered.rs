//! What a registered client says of itself, what of that can be, and what people are shown.
//!
//! What users were promised about a client must stay so. When its owner changes where it sends users to or what it
//! may ask for, the operator decides again.

use api::rest::account::{self as body, ClientUpdate};
use types::{Scope, UserId};

use super::client::{Client, GrantType, Standing};
use crate::{Error, LocalPath, Result};

/// The most characters of a description.
const DESCRIPTION_CHARACTERS_MAX: usize = 1000;
/// The most bytes of an address.
const URI_BYTES_MAX: usize = 500;
/// What would run in the browser instead of going somewhere.
const SCHEMES_REFUSED: [&str; 5] = ["javascript", "data", "file", "blob", "vbscript"];

impl Client {
    /// The client as everybody may see it whom it asks for something.
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

    /// Whether this user registered it, and did not delete it.
    pub(crate) fn is_of(&self, user_id: &UserId) -> bool {
        self.owner.as_ref() == Some(user_id) && self.standing != Standing::Deleted
    }

    /// Puts an update into the client, which then waits for the operator unless only its description changed.
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

/// Users' passwords are for the operator's own clients only.
fn grant_for_all(text: &str) -> Result<GrantType> {
    let must = "must be authorization_code and refresh_token, or one of them";
    let grant = text.parse().ok().filter(|grant| *grant != GrantType::Password);
    grant.ok_or(Error::Invalid { what: "grants", must })
}

/// Refuses what is no list of general scopes.
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

/// The operator's own clients may also have users sent to a path of this site.
pub(crate) fn check_own_uri(text: &str) -> Result<()> {
    let is_local = text.parse::<LocalPath>().is_ok() && !text.contains('#');
    if is_local { Ok(()) } else { check_uri(text) }
}

/// Codes go to this address: on the way they must be read by nobody, and nothing may run there.
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

/// Whether it is this machine, on any port.
fn is_local(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]") && port.bytes().all(|byte| byte.is_ascii_digit())
}
