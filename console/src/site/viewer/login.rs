//! Logging in with an authorization code, and out.

use axum::{
    extract::{Query, State},
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use client::account::AuthorizationCode;
use serde::Deserialize;
use types::{Credential, Secret};

use super::{COOKIE, account_cookie};
use crate::{
    Console, Error, Result,
    messages::history::parameters,
    session::{LOGIN_LIFETIME, PendingLogin, SESSION_LIFETIME},
    site::failure::Failure,
};

const LOGIN_COOKIE: &str = "console_login";
const SCOPE: &str = "apps profile";

/// The page to show after the login.
#[derive(Deserialize)]
pub(in crate::site) struct Next {
    #[serde(default)]
    next: String,
}

/// The parameters of the account service's redirect.
#[derive(Deserialize)]
pub(in crate::site) struct Answer {
    code: Option<Secret>,
    #[serde(default)]
    state: String,
}

/// The path of the login that leads to a page.
pub(in crate::site) fn path(next: &str) -> String {
    format!("/console/login?{}", parameters([("next", next)]))
}

/// Redirects to the account service, which redirects back at once if the user is logged in there.
pub(in crate::site) async fn begin(
    State(console): State<Console>,
    Query(Next { next }): Query<Next>,
) -> Result<Response, Failure> {
    let login = console.begin_login(if is_own(&next) { &next } else { "/console" });
    let cookie = cookie(&console, LOGIN_COOKIE, console.seal_login(&login)?, LOGIN_LIFETIME.as_secs());
    Ok((CookieJar::new().add(cookie), Redirect::to(&authorize_url(&console, &login))).into_response())
}

/// Redeems the code, and goes where the user wanted to.
pub(in crate::site) async fn finish(
    State(console): State<Console>,
    cookies: CookieJar,
    Query(Answer { code, state }): Query<Answer>,
) -> Result<Response, Failure> {
    let login = cookies.get(LOGIN_COOKIE).and_then(|cookie| console.open_login(cookie.value()));
    let login = login.filter(|login| login.state == state);
    let login = login.ok_or(Error::Login("this login has expired or was started in another browser: log in again"))?;
    let code = code.ok_or(Error::Login("you did not allow access"))?;
    let redirect_uri = console.place.callback();
    let code = AuthorizationCode { code, redirect_uri, verifier: Some(login.verifier()) };
    let response = console.account.code_token(&console.client, code).await?;
    let user = console.account.me(&Credential::Token(response.access_token.clone())).await?;
    let session = console.session_of(response, user, account_cookie(&cookies).as_deref());
    let session = cookie(&console, COOKIE, console.seal_session(&session)?, SESSION_LIFETIME.as_secs());
    let done = cookie(&console, LOGIN_COOKIE, String::new(), 0);
    Ok((CookieJar::new().add(session).add(done), Redirect::to(&login.next)).into_response())
}

/// Ends the session here. The account site is logged out of there.
pub(in crate::site) async fn log_out(State(console): State<Console>) -> Response {
    let ended = CookieJar::new().add(cookie(&console, COOKIE, String::new(), 0));
    (ended, Redirect::to(&format!("{}/", console.place.account_url()))).into_response()
}

fn authorize_url(console: &Console, login: &PendingLogin) -> String {
    let callback = console.place.callback();
    let mut url = console.account.authorize_url(&console.client.id, &callback, &login.verifier());
    url.query_pairs_mut().extend_pairs([("scope", SCOPE), ("state", &login.state)]);
    // The console may reach the account service at another address than people do.
    format!("{}{}?{}", console.place.account_url(), url.path(), url.query().unwrap_or_default())
}

/// A cookie for the pages of the console.
pub(in crate::site) fn cookie(console: &Console, name: &'static str, value: String, seconds: u64) -> Cookie<'static> {
    let max_age = time::Duration::seconds(seconds.try_into().unwrap_or_default());
    let cookie = Cookie::build((name, value)).path("/console").http_only(true).same_site(SameSite::Lax);
    cookie.secure(console.place.is_https()).max_age(max_age).build()
}

/// Returns true for a path of the console that browsers cannot take for another site.
fn is_own(next: &str) -> bool {
    let rest = next.strip_prefix("/console");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_of_the_console_only() {
        for own in ["/console", "/console/applications/a1?x=%20", "/console?x=1"] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["", "/", "//evil.example", "/consoles", "/console\\evil", "https://evil.example/console", "/console/ x"]
        {
            assert!(!is_own(other), "{other}");
        }
    }
}
