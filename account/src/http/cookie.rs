//! The session cookie, and protection against cross-site request forgery.
//!
//! A browser sends the cookie with requests that any site causes. So requests that change something must come from this
//! site, as `server::site` finds out.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts, Request, State},
    http::{HeaderMap, Method, request::Parts},
    middleware::Next,
    response::Response,
};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use server::{
    auth::{AuthError, credential_of},
    site::{Origin, origin},
};
use time::Duration;
use types::{Scope, Secret};

use super::error::HttpError;
use crate::{Account, AuthenticatedUser, Error, SESSION_LIFETIME, Session, provider::flow::FLOW_LIFETIME};

const NAME: &str = "session";
/// The cookie of a login at a provider that has begun. Only the addresses of such logins get it.
const FLOW_NAME: &str = "provider_login";
const FLOW_PATH: &str = "/users/login";
/// The cookie of a user who wants a first application with the account. The console creates it, and ends the cookie.
const FIRST_APPLICATION_NAME: &str = "first_application";
const FIRST_APPLICATION_PATH: &str = "/console";
const FIRST_APPLICATION_LIFETIME: Duration = Duration::minutes(10);

impl FromRequestParts<Account> for Session {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let session = <Self as OptionalFromRequestParts<Account>>::from_request_parts(parts, account).await?;
        session.ok_or_else(|| Error::from(AuthError::Missing).into())
    }
}

impl OptionalFromRequestParts<Account> for Session {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Option<Self>, HttpError> {
        match CookieJar::from_headers(&parts.headers).get(NAME) {
            Some(cookie) => Ok(account.session(cookie.value()).await?),
            None => Ok(None),
        }
    }
}

/// A token takes precedence over the cookie.
impl FromRequestParts<Account> for AuthenticatedUser {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        if let Some(credential) = credential_of(&parts.headers).map_err(Error::from)? {
            let caller = account.caller_of(parts, credential).await?;
            return Ok(Self::Token(caller.user_with(&Scope::Profile)?));
        }
        let session = <Session as FromRequestParts<Account>>::from_request_parts(parts, account).await?;
        Ok(Self::Session(Box::new(session)))
    }
}

/// Refuses requests that another site caused, unless they are safe (GET, HEAD, OPTIONS).
///
/// Requests without a cookie and without these headers pass: programs send credentials of their own.
pub(crate) async fn same_site(
    State(account): State<Account>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    check_site(&account, &request)?;
    Ok(next.run(request).await)
}

/// Like [`same_site`], but requests with a token pass.
///
/// Other credentials do not count: browsers send a stored Basic password with cross-site requests, too.
pub(crate) async fn same_site_or_token(
    State(account): State<Account>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    if !matches!(credential_of(request.headers()), Ok(Some(_))) {
        check_site(&account, &request)?;
    }
    Ok(next.run(request).await)
}

fn check_site(account: &Account, request: &Request) -> Result<(), Error> {
    let headers = request.headers();
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    let passes = match origin(headers, account.public_url.as_str()) {
        Origin::SameSite => true,
        Origin::CrossSite => safe,
        Origin::Unknown => safe || CookieJar::from_headers(headers).get(NAME).is_none(),
    };
    if passes { Ok(()) } else { Err(Error::OtherSite(account.public_url.to_string())) }
}

pub(crate) fn set(account: &Account, value: &Secret) -> CookieJar {
    let lifetime = SESSION_LIFETIME.try_into().unwrap_or(Duration::ZERO);
    CookieJar::new().add(cookie(account, value.expose().to_owned(), lifetime))
}

pub(crate) fn clear(account: &Account) -> CookieJar {
    CookieJar::new().add(cookie(account, String::new(), Duration::ZERO))
}

/// Lets the console create the user's first application. Browsers send the cookie with no request of another site.
pub(crate) fn with_first_application(account: &Account, cookies: CookieJar) -> CookieJar {
    let mut cookie = cookie(account, "wanted".to_owned(), FIRST_APPLICATION_LIFETIME);
    cookie.set_name(FIRST_APPLICATION_NAME);
    cookie.set_path(FIRST_APPLICATION_PATH);
    cookie.set_same_site(SameSite::Strict);
    cookies.add(cookie)
}

/// The cookie of a login at a provider that begins.
pub(crate) fn set_flow(account: &Account, value: &Secret) -> CookieJar {
    let lifetime = FLOW_LIFETIME.try_into().unwrap_or(Duration::ZERO);
    CookieJar::new().add(flow(account, value.expose().to_owned(), lifetime))
}

/// Also removes the cookie of a login at a provider, which has ended.
pub(crate) fn without_flow(account: &Account, cookies: CookieJar) -> CookieJar {
    cookies.add(flow(account, String::new(), Duration::ZERO))
}

/// The login at a provider that a browser has begun.
pub(crate) fn flow_of(headers: &HeaderMap) -> Option<String> {
    CookieJar::from_headers(headers).get(FLOW_NAME).map(|cookie| cookie.value().to_owned())
}

/// It comes with the redirect from the provider, because that is a navigation.
fn flow(account: &Account, value: String, lifetime: Duration) -> Cookie<'static> {
    let mut cookie = cookie(account, value, lifetime);
    cookie.set_name(FLOW_NAME);
    cookie.set_path(FLOW_PATH);
    cookie
}

fn cookie(account: &Account, value: String, lifetime: Duration) -> Cookie<'static> {
    let cookie = Cookie::build((NAME, value)).path("/").http_only(true).same_site(SameSite::Lax);
    cookie.secure(account.public_url.is_https()).max_age(lifetime).build()
}
