//! The session cookie, and protection against cross-site requests.
//!
//! A browser sends the cookie with requests from any page, so requests that change something must come from our own
//! pages: the browser says so in `Sec-Fetch-Site` or `Origin`, which pages cannot forge.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts, Request, State},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::Response,
};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use server::auth::{AuthError, credential_of};
use time::Duration;
use types::{Scope, Secret};

use super::reply::Reply;
use crate::{Account, Error, AuthenticatedUser, SESSION_LIFETIME, Session};

/// The name of the cookie.
const NAME: &str = "session";
/// The header in which browsers say which site made the request.
const FETCH_SITE: &str = "sec-fetch-site";

/// The origin of a request, according to its headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Here,
    Elsewhere,
    Nowhere,
}

impl FromRequestParts<Account> for Session {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        let session = <Self as OptionalFromRequestParts<Account>>::from_request_parts(parts, account).await?;
        session.ok_or_else(|| Error::from(AuthError::Missing).into())
    }
}

impl OptionalFromRequestParts<Account> for Session {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Option<Self>, Reply> {
        match CookieJar::from_headers(&parts.headers).get(NAME) {
            Some(cookie) => Ok(account.session(cookie.value()).await?),
            None => Ok(None),
        }
    }
}

/// A token comes before a cookie: who sends one means it.
impl FromRequestParts<Account> for AuthenticatedUser {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        if let Some(credential) = credential_of(&parts.headers).map_err(Error::from)? {
            let caller = account.caller(credential).await?;
            return Ok(Self::Token(caller.user_with(&Scope::Profile)?));
        }
        let session = <Session as FromRequestParts<Account>>::from_request_parts(parts, account).await?;
        Ok(Self::Session(Box::new(session)))
    }
}

/// Rejects cross-site requests that change something.
///
/// Requests without a cookie and origin come from programs with their own credentials, and pass.
pub(crate) async fn same_site(State(account): State<Account>, request: Request, next: Next) -> Result<Response, Reply> {
    check_site(&account, &request)?;
    Ok(next.run(request).await)
}

/// Like [`same_site`], but requests with a token may come from anywhere.
///
/// No other kind of credentials counts: browsers send Basic credentials that they know with cross-site requests too.
pub(crate) async fn same_site_or_token(
    State(account): State<Account>,
    request: Request,
    next: Next,
) -> Result<Response, Reply> {
    if !matches!(credential_of(request.headers()), Ok(Some(_))) {
        check_site(&account, &request)?;
    }
    Ok(next.run(request).await)
}

fn check_site(account: &Account, request: &Request) -> Result<(), Error> {
    let headers = request.headers();
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    let passes = match from(headers, account.public_url.as_str()) {
        From::Here => true,
        From::Elsewhere => safe,
        From::Nowhere => safe || CookieJar::from_headers(headers).get(NAME).is_none(),
    };
    if passes { Ok(()) } else { Err(Error::OtherSite(account.public_url.to_string())) }
}

/// The cookie of a new session.
pub(crate) fn begin(account: &Account, value: &Secret) -> CookieJar {
    let lifetime = SESSION_LIFETIME.try_into().unwrap_or(Duration::ZERO);
    CookieJar::new().add(cookie(account, value.expose().to_owned(), lifetime))
}

/// The cookie that removes a session's cookie.
pub(crate) fn end(account: &Account) -> CookieJar {
    CookieJar::new().add(cookie(account, String::new(), Duration::ZERO))
}

fn cookie(account: &Account, value: String, lifetime: Duration) -> Cookie<'static> {
    let cookie = Cookie::build((NAME, value)).path("/").http_only(true).same_site(SameSite::Lax);
    cookie.secure(account.public_url.is_https()).max_age(lifetime).build()
}

fn from(headers: &HeaderMap, origin: &str) -> From {
    let single = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let first = values.next()?;
        // A repeated header cannot be trusted.
        Some(if values.next().is_some() { "" } else { first.to_str().unwrap_or_default() })
    };
    match (single(FETCH_SITE), single(header::ORIGIN.as_str())) {
        (Some("same-origin"), _) => From::Here,
        (Some(_), _) => From::Elsewhere,
        (None, Some(sent)) if sent == origin => From::Here,
        (None, Some(_)) => From::Elsewhere,
        (None, None) => From::Nowhere,
    }
}
