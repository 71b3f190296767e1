//! Asks whether a program may act for the user.

use askama::Template;
use axum::{
    extract::{Query, RawQuery, State, rejection::QueryRejection},
    response::{IntoResponse, Redirect, Response},
};

use crate::{
    Account, Authorization, AuthorizationRequest, ConsentRequest, Error,
    http::{
        error::HttpError,
        site::page::{Frame, Page, labels, viewer::Viewer},
    },
};

#[derive(Template)]
#[template(path = "consent.html")]
struct Consent {
    frame: Frame,
    consent: ConsentRequest,
    /// The authorization request, as hidden fields.
    request: Vec<(&'static str, String)>,
}

impl Consent {
    fn may(&self) -> Vec<String> {
        self.consent.scope.iter().map(labels::scope).collect()
    }

    /// Returns true if the user must type the code into the program.
    fn shows_code(&self) -> bool {
        self.consent.redirect_uri.starts_with('/')
    }
}

/// Asks for consent if necessary; otherwise continues with the authorization endpoint.
pub(in crate::http::site) async fn ask(
    State(account): State<Account>,
    viewer: Viewer,
    RawQuery(query): RawQuery,
    request: Result<Query<AuthorizationRequest>, QueryRejection>,
) -> Result<Response, HttpError> {
    let Query(request) = request.map_err(|error| Error::Body(error.body_text()))?;
    let Authorization::Ask(consent) = account.authorize(Some(&viewer.session), &request).await? else {
        let query = query.unwrap_or_default();
        return Ok(Redirect::to(&format!("/users/authorize?{query}")).into_response());
    };
    let redirect_uri = consent.redirect_uri.clone();
    let page = Page::new(Consent { frame: viewer.frame(), consent, request: members(request) });
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
