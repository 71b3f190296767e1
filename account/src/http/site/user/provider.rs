//! Logging in at OpenID Connect providers, and linking such logins.

use askama::Template;
use axum::{
    extract::{FromRequestParts, Query, State, rejection::QueryRejection},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::cookie::CookieJar;
use serde::Deserialize;
use server::status;
use types::{Kinded, Secret};

use super::{
    login::{self, Next},
    profile,
};
use crate::{
    Account, Error, ProviderName,
    http::{
        cookie,
        error::HttpError,
        path::IdPath,
        peer::Peer,
        site::page::{
            Frame, Page, done,
            form::{Fields, Form},
            notice::Notice,
            viewer::{MaybeViewer, Viewer},
        },
    },
    provider::login::{Answer, Arrival, Returned},
};

const PROFILE: &str = "/users/profile";

/// The page that asks for the password before a login is linked.
#[derive(Template)]
#[template(path = "link_login.html")]
pub(in crate::http::site) struct LinkLogin {
    frame: Frame,
    form: Form,
    title: String,
    has_password: bool,
}

/// The page that leads to the provider.
#[derive(Template)]
#[template(path = "departure.html")]
struct DeparturePage {
    frame: Frame,
    title: String,
    url: String,
}

/// The parameters of the provider's redirect, with the cookie of the login that the browser began.
pub(in crate::http::site) struct Callback {
    cookie: Option<String>,
    answer: Answer,
}

#[derive(Deserialize)]
struct CallbackQuery {
    code: Option<Secret>,
    #[serde(default)]
    state: String,
    iss: Option<String>,
    error: Option<String>,
}

impl FromRequestParts<Account> for Callback {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &Account) -> Result<Self, HttpError> {
        let query = Query::<CallbackQuery>::try_from_uri(&parts.uri);
        let Query(CallbackQuery { code, state, iss, error }) = query.map_err(|error| Error::Body(error.body_text()))?;
        let cookie = cookie::flow_of(&parts.headers);
        Ok(Self { cookie, answer: Answer { code, state, issuer: iss, error } })
    }
}

/// Sends a browser to the provider.
pub(in crate::http::site) async fn begin(
    State(account): State<Account>,
    Peer(from): Peer,
    viewer: MaybeViewer,
    IdPath(name): IdPath<ProviderName>,
    query: Result<Query<Next>, QueryRejection>,
) -> Result<Response, HttpError> {
    account.providers.get(&name)?;
    let Query(Next { next }) = query.map_err(|error| Error::Body(error.body_text()))?;
    match account.begin_login_at(&name, next.clone(), from).await {
        Ok(departure) => {
            Ok((cookie::set_flow(&account, &departure.cookie), Redirect::to(&departure.url)).into_response())
        }
        Err(error) => refused(&account, viewer, next, error).await,
    }
}

/// Takes a browser back from the provider.
pub(in crate::http::site) async fn finish(
    State(account): State<Account>,
    Peer(from): Peer,
    viewer: MaybeViewer,
    IdPath(name): IdPath<ProviderName>,
    Callback { cookie, answer }: Callback,
) -> Result<Response, HttpError> {
    account.providers.get(&name)?;
    let returned = Returned { cookie: cookie.as_deref(), answer, session: viewer.session.as_ref() };
    let arrival = account.finish_login_at(&name, returned, from).await;
    let ended = cookie::without_flow(&account, CookieJar::new());
    match arrival {
        Ok(Arrival::LoggedIn { cookie: value, next }) => {
            if let Some(old) = viewer.session {
                account.log_out(&old).await?;
            }
            let (session, redirect) = login::welcome(&account, &value, &next);
            Ok((cookie::without_flow(&account, session), redirect).into_response())
        }
        Ok(Arrival::Linked) => Ok((ended, done(PROFILE, Notice::LoginLinked)).into_response()),
        Err(error) => Ok((ended, refused(&account, viewer, String::new(), error).await?).into_response()),
    }
}

/// Asks for the password before a login is linked.
pub(in crate::http::site) async fn ask_link(
    State(account): State<Account>,
    viewer: Viewer,
    IdPath(name): IdPath<ProviderName>,
) -> Result<Page<LinkLogin>, HttpError> {
    let title = account.providers.get(&name)?.title().to_owned();
    Ok(link_page(&viewer, title, Form::default()))
}

/// Leads to the provider, to link the login there with the viewer.
pub(in crate::http::site) async fn link(
    State(account): State<Account>,
    viewer: Viewer,
    IdPath(name): IdPath<ProviderName>,
    fields: Fields,
) -> Result<Response, HttpError> {
    let title = account.providers.get(&name)?.title().to_owned();
    match account.begin_link(&name, &viewer.session, fields.secret("old_password")).await {
        Ok(departure) => {
            let page = Page::new(DeparturePage { frame: viewer.frame(), title, url: departure.url });
            Ok((cookie::set_flow(&account, &departure.cookie), page).into_response())
        }
        Err(error) => {
            let (form, status) = explained(error)?;
            Ok(link_page(&viewer, title, form).with_status(status).into_response())
        }
    }
}

pub(in crate::http::site) async fn unlink(
    State(account): State<Account>,
    viewer: Viewer,
    fields: Fields,
) -> Result<Response, HttpError> {
    match account.unlink(viewer.session.user_id(), fields.text("issuer")).await {
        Ok(()) => Ok(done(PROFILE, Notice::LoginUnlinked).into_response()),
        Err(error) => profile::refused(&account, &viewer, error).await,
    }
}

fn link_page(viewer: &Viewer, title: String, form: Form) -> Page<LinkLogin> {
    Page::new(LinkLogin { frame: viewer.frame(), form, title, has_password: viewer.session.has_password() })
}

/// The login page with the reason, so that the password is at hand; for somebody who is logged in, the reason alone.
async fn refused(account: &Account, viewer: MaybeViewer, next: String, error: Error) -> Result<Response, HttpError> {
    if viewer.session.is_some() {
        return Err(error.into());
    }
    let (form, status) = explained(error)?;
    Ok(login::page(account, viewer, next, form).await.with_status(status).into_response())
}

/// A form with the error, unless that is one of ours.
fn explained(error: Error) -> Result<(Form, StatusCode), Error> {
    match error {
        Error::Provider { .. } => Ok((Form::failed(&error), status::http(error.kind()))),
        error => Form::refused(&Fields::default(), error),
    }
}
