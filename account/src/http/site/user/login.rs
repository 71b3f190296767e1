//! Logging in and out.

use askama::Template;
use axum::{
    extract::{Query, State, rejection::QueryRejection},
    http::Uri,
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::cookie::CookieJar;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use types::Secret;

use crate::{
    Account, Authorization, AuthorizationRequest, ConsentRequest, Error, LocalPath,
    http::{
        cookie,
        error::HttpError,
        peer::Peer,
        site::page::{
            APPLICATIONS, CONSOLE, Frame, Page, done,
            form::{Fields, Form},
            notice::Notice,
            viewer::MaybeViewer,
        },
    },
    provider::Provider,
};

/// The target if a program sent the user here.
const AUTHORIZE: &str = "/users/authorize";

#[derive(Template)]
#[template(path = "login.html")]
pub(in crate::http::site) struct Login {
    frame: Frame,
    form: Form,
    next: String,
    /// The path of the registration, which goes on at `next`, too.
    register: String,
    /// The program that sent the user here, if any but the console of this site.
    client: Option<String>,
    providers: Vec<ProviderLink>,
}

/// A link that begins a login at a provider.
struct ProviderLink {
    title: String,
    path: String,
}

/// Path to go to after the login.
#[derive(Deserialize)]
pub(in crate::http::site) struct Next {
    #[serde(default)]
    pub(super) next: String,
}

pub(in crate::http::site) async fn show(
    State(account): State<Account>,
    viewer: MaybeViewer,
    query: Result<Query<Next>, QueryRejection>,
) -> Page<Login> {
    let next = query.map(|Query(query)| query.next).unwrap_or_default();
    page(&account, viewer, next, Form::default()).await
}

pub(in crate::http::site) async fn log_in(
    State(account): State<Account>,
    Peer(from): Peer,
    viewer: MaybeViewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    let response = account.log_in(fields.text("username"), fields.secret("password"), from).await;
    let value = match response.and_then(|response| response.ok_or(Error::InvalidLogin)) {
        Ok((value, _)) => value,
        Err(error) => {
            let (form, status) = Form::refused(&fields, error)?;
            return Ok(page(&account, viewer, fields.text("next").to_owned(), form)
                .await
                .with_status(status)
                .into_response());
        }
    };
    if let Some(old) = viewer.session {
        // A login always starts a new session, because the old cookie may have been planted (session fixation).
        account.log_out(&old).await?;
    }
    Ok(welcome(&account, &value, fields.text("next")).into_response())
}

pub(in crate::http::site) async fn log_out(
    State(account): State<Account>,
    viewer: MaybeViewer,
) -> Result<Response, HttpError> {
    if let Some(session) = viewer.session {
        account.log_out(&session).await?;
    }
    Ok((cookie::clear(&account), done("/", Notice::LoggedOut)).into_response())
}

/// Redirects only to paths of this site.
pub(in crate::http::site) fn welcome(account: &Account, value: &Secret, next: &str) -> (CookieJar, Redirect) {
    let next = next.parse::<LocalPath>();
    let applications = if account.console.is_some() { CONSOLE } else { APPLICATIONS };
    let next = next.as_ref().map_or(applications, LocalPath::as_str);
    (cookie::set(account, value), Redirect::to(next))
}

/// The path of a login or a registration that goes on at `next`.
pub(super) fn path_leading_to(path: &str, next: &str) -> String {
    match next {
        "" => path.to_owned(),
        next => format!("{path}?next={}", utf8_percent_encode(next, NON_ALPHANUMERIC)),
    }
}

/// The authorization request for which somebody logs in or registers.
pub(super) async fn consent_request(account: &Account, next: &str) -> Option<ConsentRequest> {
    let next: LocalPath = next.parse().ok()?;
    let uri: Uri = next.as_str().parse().ok().filter(|uri: &Uri| uri.path() == AUTHORIZE)?;
    let Query(request) = Query::<AuthorizationRequest>::try_from_uri(&uri).ok()?;
    match account.authorize(None, &request).await {
        Ok(Authorization::LogIn(consent)) => Some(consent),
        _ => None,
    }
}

/// The login page. If it is for a program, its form may redirect to that program.
pub(in crate::http::site) async fn page(
    account: &Account,
    viewer: MaybeViewer,
    next: String,
    form: Form,
) -> Page<Login> {
    let consent_request = consent_request(account, &next).await;
    let asking = consent_request.as_ref().filter(|consent| !consent.is_own_console);
    let client = asking.map(|consent| consent.client.to_string());
    let link = |provider: &Provider| ProviderLink {
        title: provider.title().to_owned(),
        path: format!("/users/login/{}?next={}", provider.name, utf8_percent_encode(&next, NON_ALPHANUMERIC)),
    };
    let providers = account.providers.iter().map(link).collect();
    let register = path_leading_to("/register", &next);
    let page = Page::new(Login { frame: viewer.frame(), form, next, register, client, providers });
    match consent_request {
        Some(consent) => page.leading_to(&consent.redirect_uri),
        None => page,
    }
}
