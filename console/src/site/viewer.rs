//! Viewers of pages: the applications that they may see, their logins, and their forms that are kept.

pub(super) mod draft;
pub(super) mod login;

use std::collections::HashMap;

use axum::{
    extract::{Form, FromRequest, FromRequestParts, Path, Query, Request},
    http::request::Parts,
};
use axum_extra::extract::cookie::CookieJar;
use client::handler::HandlerClient;
use server::ledger::{Charge, Owner};
use types::{AppId, DevId, Kind, Kinded, UserId};

use super::{
    failure::{Failure, Problem},
    page::{Frame, Notice},
};
use crate::{
    Console, Error, Result,
    form::{
        device::{Draw, Drawn},
        drafts::Fields,
    },
    services::Access,
    session::Session,
};

/// The name of the cookie.
pub(super) const COOKIE: &str = "console";
/// The cookie of the account site, at the same address.
const ACCOUNT_COOKIE: &str = "session";

/// Somebody who is logged in. Others are sent to the login.
pub(super) struct Viewer {
    pub(super) session: Session,
    pub(super) frame: Frame,
}

/// Somebody who may see the pages of operators. For others, there are no such pages.
pub(super) struct Operator {
    pub(super) console: Console,
    pub(super) session: Session,
    pub(super) frame: Frame,
    /// The reason why nobody knows whether the login still counts.
    pub(super) unconfirmed: Option<Problem>,
}

/// Anybody, logged in or not.
pub(super) struct MaybeViewer {
    session: Option<Session>,
    /// True if the session is valid.
    is_current: bool,
    path: String,
    notice: Option<Notice>,
}

/// A request to a page of an application that the viewer may see.
pub(super) struct InApplication {
    pub(super) console: Console,
    pub(super) frame: Frame,
    pub(super) access: Access,
    pub(super) session: Session,
    parameters: HashMap<String, String>,
}

/// The parameters of a URL, or the fields of a form, in their order.
pub(super) struct Sent(pub(super) Fields);

impl MaybeViewer {
    pub(super) fn frame(&self, console: &Console) -> Frame {
        Frame {
            username: self.current().map(|session| session.username.to_string()),
            notice: self.notice,
            path: self.path.clone(),
            account: console.place.account_url().to_owned(),
            is_operator: self.current().is_some_and(|session| console.has_operator(&session.user_id)),
        }
    }

    /// The session, if it has expired.
    pub(super) fn expired(&self) -> Option<&Session> {
        self.session.as_ref().filter(|_| !self.is_current)
    }

    /// The session, if it has not expired.
    pub(super) fn current(&self) -> Option<&Session> {
        self.session.as_ref().filter(|_| self.is_current)
    }
}

impl Operator {
    /// The viewer as an operator; not found if it is none.
    async fn of(console: &Console, Viewer { session, frame }: Viewer) -> Result<Self, Failure> {
        if !console.has_operator(&session.user_id) {
            return Err(Error::NotFound("page").into());
        }
        // What the page shows, it does not ask with the token.
        let unconfirmed = match console.confirm(&session).await {
            Ok(()) => None,
            Err(error) if matches!(error.kind(), Kind::Unavailable | Kind::Timeout) => Some(Problem::of(&error)),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { console: console.clone(), session, frame, unconfirmed })
    }
}

impl InApplication {
    pub(super) fn app_id(&self) -> &AppId {
        &self.access.app_id
    }

    /// A request to the page of which a draft is the form.
    pub(super) fn of_draft(console: Console, (viewer, access): (Viewer, Access), rest: &str) -> Self {
        let below = |part: &str| rest.strip_prefix(part).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let parameters = [("dev_id", below("devices/")), ("webhook_id", below("webhooks/"))];
        let parameters = parameters.map(|(name, id)| (name.to_owned(), id.to_owned())).into();
        Self { console, frame: viewer.frame, access, session: viewer.session, parameters }
    }

    /// A parameter of the path.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The handler of the application. Without one, there is nothing to show.
    pub(super) async fn handler(&self) -> Result<HandlerClient> {
        self.console.handler(&self.access).await?.ok_or(Error::NotServed)
    }

    /// Describes the author of a change, such as `user bob`, for the viewer.
    pub(super) fn name(&self, changed_by: &str) -> String {
        let is_viewer = changed_by.strip_prefix("user ") == Some(self.user_id().as_str());
        if is_viewer { "you".to_owned() } else { changed_by.to_owned() }
    }

    pub(super) fn user_id(&self) -> &UserId {
        &self.session.user_id
    }

    /// Returns the owner who is charged for what the viewer opens.
    pub(super) fn owner(&self) -> Owner {
        Owner::from(self.user_id())
    }

    /// A place among the files that may be downloaded at once, until it is dropped.
    pub(super) fn download(&self) -> Result<Charge> {
        self.console.downloads.charge(&self.owner(), 1).map_err(|_| Error::Downloads)
    }

    /// The random values of a form that the viewer has sent, for a device of the application.
    pub(super) fn drawn(&self, draw: &Draw, dev_id: &DevId) -> Drawn {
        self.console.drawn(draw, self.user_id(), (self.app_id(), dev_id))
    }

    /// The path of the application's pages.
    pub(super) fn path(&self) -> String {
        format!("/console/applications/{}", self.app_id())
    }
}

impl FromRequestParts<Console> for MaybeViewer {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Self::Rejection> {
        let cookies = CookieJar::from_headers(&parts.headers);
        let session = cookies.get(COOKIE).and_then(|cookie| console.open_session(cookie.value()));
        let account = account_cookie(&cookies);
        let is_current = session.as_ref().is_some_and(|session| console.is_current(session, account.as_deref()));
        let query = Query::<HashMap<String, String>>::try_from_uri(&parts.uri);
        let notice = query.ok().and_then(|Query(query)| Notice::named(query.get("done")?));
        Ok(Self { session, is_current, path: parts.uri.path().to_owned(), notice })
    }
}

impl FromRequestParts<Console> for Viewer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        let Ok(viewer) = MaybeViewer::from_request_parts(parts, console).await;
        let frame = viewer.frame(console);
        let session = viewer.session.filter(|_| viewer.is_current).ok_or(Error::LoggedOut)?;
        Ok(Self { session, frame })
    }
}

impl FromRequestParts<Console> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        Self::of(console, Viewer::from_request_parts(parts, console).await?).await
    }
}

impl FromRequestParts<Console> for InApplication {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        let Viewer { session, frame } = Viewer::from_request_parts(parts, console).await?;
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, console).await;
        let Path(parameters) = path.map_err(|_| Error::NotFound("page"))?;
        let app_id = parameters.get("app_id").map(String::as_str).unwrap_or_default();
        let app_id = app_id.parse().map_err(|_| Error::NotFound("application"))?;
        let access = console.access(&session, app_id).await?;
        Ok(Self { console: console.clone(), frame, access, session, parameters })
    }
}

impl FromRequest<Console> for Sent {
    type Rejection = Failure;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Failure> {
        let form = Form::<Fields>::from_request(request, console).await;
        form.map(|Form(fields)| Self(fields)).map_err(|error| Error::Form(error.body_text()).into())
    }
}

impl Sent {
    /// The value of a field as it was sent; empty if it was not.
    pub(super) fn value(&self, name: &str) -> &str {
        self.values(name).next().unwrap_or_default()
    }

    /// The values of a field that may be sent several times.
    pub(super) fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(super) fn account_cookie(cookies: &CookieJar) -> Option<String> {
    cookies.get(ACCOUNT_COOKIE).map(|cookie| cookie.value().to_owned())
}
