//! The consent page: whether a program may act for the user.

use askama::Template;
use axum::{
    extract::{Query, RawQuery, State, rejection::QueryRejection},
    response::{IntoResponse, Redirect, Response},
};

use crate::{
    Account, Authorization, AuthorizationRequest, Error, ConsentRequest,
    http::reply::Reply,
    site::page::{Frame, Page, labels, viewer::Viewer},
};

#[derive(Template)]
#[template(path = "consent.html")]
struct Consent {
    frame: Frame,
    question: ConsentRequest,
    /// What the form sends along: the request, as it came.
    request: Vec<(&'static str, String)>,
}

impl Consent {
    /// Descriptions of the requested scopes.
    fn may(&self) -> Vec<String> {
        self.question.scope.iter().map(labels::scope).collect()
    }

    /// Whether the code is shown here, for the user to type into a program.
    fn shows_code(&self) -> bool {
        self.question.redirect_uri.starts_with('/')
    }
}

/// Asks for consent if needed, and otherwise continues like the authorization endpoint.
pub(in crate::site) async fn ask(
    State(account): State<Account>,
    viewer: Viewer,
    RawQuery(query): RawQuery,
    request: Result<Query<AuthorizationRequest>, QueryRejection>,
) -> Result<Response, Reply> {
    let Query(request) = request.map_err(|error| Error::Body(error.body_text()))?;
    let Authorization::Ask(question) = account.authorize(Some(&viewer.session), &request).await? else {
        let query = query.unwrap_or_default();
        return Ok(Redirect::to(&format!("/users/authorize?{query}")).into_response());
    };
    let redirect_uri = question.redirect_uri.clone();
    let page = Page::new(Consent { frame: viewer.frame(), question, request: members(request) });
    Ok(page.leading_to(&redirect_uri).into_response())
}

fn members(request: AuthorizationRequest) -> Vec<(&'static str, String)> {
    let AuthorizationRequest {
        client_id,
        redirect_uri,
        response_type,
        scope,
        state,
        code_challenge,
        code_challenge_method,
    } = request;
    let all = [
        ("client_id", client_id),
        ("redirect_uri", redirect_uri),
        ("response_type", response_type),
        ("scope", scope),
        ("state", state),
        ("code_challenge", code_challenge),
        ("code_challenge_method", code_challenge_method),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
