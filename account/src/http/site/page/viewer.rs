//! The viewer of a page.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts, Query},
    http::{Method, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::{Frame, notice::Notice};
use crate::{
    Account, AuthenticatedUser, Session,
    entity::access::Caller,
    http::{
        error::HttpError,
        path::EntityPath,
        site::entity::{SiteEntity, path},
    },
};

/// Somebody who is logged in. Others are redirected to the login page.
pub(in crate::http::site) struct Viewer {
    pub(in crate::http::site) session: Session,
    request: PageRequest,
}

/// Anybody, logged in or not.
pub(crate) struct MaybeViewer {
    pub(in crate::http::site) session: Option<Session>,
    request: PageRequest,
}

/// A request to a page of an application or gateway, which the path names. The viewer's rights are not checked yet.
pub(in crate::http::site) struct EntityRequest<E: SiteEntity> {
    pub(in crate::http::site) account: Account,
    pub(in crate::http::site) viewer: Viewer,
    pub(in crate::http::site) id: E::Id,
    pub(in crate::http::site) caller: Caller,
}

struct PageRequest {
    path: String,
    has_console: bool,
    is_operator: bool,
    notice: Option<Notice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NoticeQuery {
    done: String,
}

impl Viewer {
    pub(in crate::http::site) fn frame(&self) -> Frame {
        self.request.frame(Some(&self.session))
    }

    pub(in crate::http::site) fn into_authenticated(self) -> AuthenticatedUser {
        AuthenticatedUser::Session(Box::new(self.session))
    }
}

impl MaybeViewer {
    pub(in crate::http::site) fn frame(&self) -> Frame {
        self.request.frame(self.session.as_ref())
    }
}

impl<E: SiteEntity> EntityRequest<E> {
    pub(in crate::http::site) fn frame(&self) -> Frame {
        self.viewer.frame()
    }

    /// The path of the entity's page.
    pub(in crate::http::site) fn path(&self) -> String {
        path::<E>(&self.id)
    }
}

impl PageRequest {
    fn frame(&self, session: Option<&Session>) -> Frame {
        let username = session.map(|session| session.profile().username.to_string());
        let Self { has_console, is_operator, notice, .. } = *self;
        Frame { username, notice, path: self.path.clone(), has_console, is_operator }
    }
}

impl FromRequestParts<Account> for Viewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Response> {
        let viewer = MaybeViewer::from_request_parts(parts, account).await;
        let MaybeViewer { session, request } = viewer.map_err(IntoResponse::into_response)?;
        session.map(|session| Self { session, request }).ok_or_else(|| log_in_first(parts).into_response())
    }
}

impl<E: SiteEntity> FromRequestParts<Account> for EntityRequest<E> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, Response> {
        let viewer = Viewer::from_request_parts(parts, account).await?;
        let path = EntityPath::<E>::from_request_parts(parts, account).await;
        let EntityPath(id) = path.map_err(IntoResponse::into_response)?;
        let caller = Caller::Bearer(Box::new(account.claims_at_site(viewer.session.user_id(), E::scope(&id))));
        Ok(Self { account: account.clone(), viewer, id, caller })
    }
}

impl FromRequestParts<Account> for MaybeViewer {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, account: &Account) -> Result<Self, HttpError> {
        let session = <Session as OptionalFromRequestParts<Account>>::from_request_parts(parts, account).await?;
        let done = Query::<NoticeQuery>::try_from_uri(&parts.uri).map(|Query(query)| query.done).unwrap_or_default();
        let (path, has_console) = (parts.uri.path().to_owned(), account.console.is_some());
        let is_operator = session.as_ref().is_some_and(|session| account.sees_operator_pages(session.user_id()));
        let request = PageRequest { path, has_console, is_operator, notice: done.parse().ok() };
        Ok(Self { session, request })
    }
}

/// Redirects to the login page and back. A submitted form is lost.
fn log_in_first(parts: &Parts) -> Redirect {
    let here = parts.uri.path_and_query().map(ToString::to_string).filter(|_| parts.method == Method::GET);
    Redirect::to(&match here {
        Some(here) => format!("/users/login?next={}", utf8_percent_encode(&here, NON_ALPHANUMERIC)),
        None => "/users/login".to_owned(),
    })
}
