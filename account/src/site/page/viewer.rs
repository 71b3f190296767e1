//! The caller of a page.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts, Query},
    http::{Method, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::{Frame, notice::Notice};
use crate::{Account, AuthenticatedUser, Session, entity::access::Caller, http::reply::Reply, site::entity::SiteEntity};

/// Somebody who is logged in. Whoever is not is sent to where that can be done.
pub(in crate::site) struct Viewer {
    pub(in crate::site) session: Session,
    asked: Asked,
}

/// Anybody, logged in or not.
pub(in crate::site) struct MaybeViewer {
    pub(in crate::site) session: Option<Session>,
    asked: Asked,
}

/// The request of a browser.
struct Asked {
    path: String,
    notice: Option<Notice>,
}

/// The notice in the query.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Done {
    done: String,
}

impl Viewer {
    /// The frame of a page for them.
    pub(in crate::site) fn frame(&self) -> Frame {
        self.asked.frame(Some(&self.session))
    }

    /// Who calls, when they do something to an entity.
    pub(in crate::site) fn caller<E: SiteEntity>(&self, account: &Account, id: &E::Id) -> Caller {
        Caller::Bearer(Box::new(account.claims_at_site(self.session.user_id(), E::scope(id))))
    }

    /// Who changes a profile.
    pub(in crate::site) fn into_authenticated(self) -> AuthenticatedUser {
        AuthenticatedUser::Session(Box::new(self.session))
    }
}

impl MaybeViewer {
    /// The frame of a page for them.
    pub(in crate::site) fn frame(&self) -> Frame {
        self.asked.frame(self.session.as_ref())
    }
}

impl Asked {
    fn frame(&self, session: Option<&Session>) -> Frame {
        let username = session.map(|session| session.profile().username.to_string());
        Frame { username, notice: self.notice, path: self.path.clone() }
    }
}

impl FromRequestParts<Account> for Viewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Response> {
        let viewer = MaybeViewer::from_request_parts(parts, account).await;
        let MaybeViewer { session, asked } = viewer.map_err(IntoResponse::into_response)?;
        session.map(|session| Self { session, asked }).ok_or_else(|| log_in_first(parts).into_response())
    }
}

impl FromRequestParts<Account> for MaybeViewer {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Reply> {
        let session = <Session as OptionalFromRequestParts<Account>>::from_request_parts(parts, account).await?;
        let done = Query::<Done>::try_from_uri(&parts.uri).map(|Query(query)| query.done).unwrap_or_default();
        let asked = Asked { path: parts.uri.path().to_owned(), notice: done.parse().ok() };
        Ok(Self { session, asked })
    }
}

/// Redirects to the login and back. The data of a submitted form is lost, so its page is loaded again.
fn log_in_first(parts: &Parts) -> Redirect {
    let here = parts.uri.path_and_query().map(ToString::to_string).filter(|_| parts.method == Method::GET);
    Redirect::to(&match here {
        Some(here) => format!("/users/login?next={}", utf8_percent_encode(&here, NON_ALPHANUMERIC)),
        None => "/users/login".to_owned(),
    })
}
