//! `/users/authorize`: the authorization endpoint.

use axum::{
    extract::{Query, RawQuery, State, rejection::QueryRejection},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::utf8_percent_encode;
use serde::Deserialize;

use crate::{
    Account, Authorization, AuthorizationRequest, Error, Session,
    http::{body::AnyBody, reply::Reply},
    public_url::QUERY_VALUE,
};

/// The user's decision, with the authorization request.
#[derive(Deserialize)]
pub(super) struct Decision {
    #[serde(flatten)]
    request: AuthorizationRequest,
    decision: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Deny,
}

/// The URI contains a code, which must not leak through caches or the `Referer` header.
const PRIVATE: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::REFERRER_POLICY, "no-referrer")];

/// Redirects to the client if the user has given consent before, otherwise to the login or the consent page.
pub(super) async fn authorize(
    State(account): State<Account>,
    session: Option<Session>,
    RawQuery(query): RawQuery,
    request: Result<Query<AuthorizationRequest>, QueryRejection>,
) -> Result<Response, Reply> {
    // Repeated parameters are rejected, because another reader could use the other value.
    let Query(request) = request.map_err(|error| Error::Body(error.body_text()))?;
    let query = query.unwrap_or_default();
    Ok(match account.authorize(session.as_ref(), &request).await? {
        Authorization::Redirect(uri) => redirect(uri),
        Authorization::LogIn(_) => {
            let again = format!("/users/authorize?{query}");
            redirect(format!("/users/login?next={}", utf8_percent_encode(&again, QUERY_VALUE)))
        }
        Authorization::Ask(_) => redirect(format!("/users/consent?{query}")),
    })
}

/// Handles the user's decision and redirects to the client.
pub(super) async fn decide(
    State(account): State<Account>,
    session: Session,
    AnyBody(Decision { request, decision }): AnyBody<Decision>,
) -> Result<Response, Reply> {
    let allow = matches!(decision, Answer::Allow);
    Ok(redirect(account.decide(&session, &request, allow).await?))
}

/// With 303 the browser uses GET and does not send the form again.
fn redirect(uri: String) -> Response {
    (StatusCode::SEE_OTHER, PRIVATE, [(header::LOCATION, uri)]).into_response()
}
