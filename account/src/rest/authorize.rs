//! `/users/authorize`: where clients send users to obtain a code.

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

/// The user's decision, with the request that it belongs to.
#[derive(Deserialize)]
pub(super) struct Decision {
    #[serde(flatten)]
    request: AuthorizationRequest,
    decision: Answer,
}

/// The decision.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Deny,
}

/// Codes are secrets: keep them out of caches and referrers.
const PRIVATE: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::REFERRER_POLICY, "no-referrer")];

/// Redirects to the client if the user is logged in and consented before, and otherwise to login or consent.
pub(super) async fn authorize(
    State(account): State<Account>,
    session: Option<Session>,
    RawQuery(query): RawQuery,
    request: Result<Query<AuthorizationRequest>, QueryRejection>,
) -> Result<Response, Reply> {
    // A repeated parameter is rejected here, so that no two readers can see different requests.
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

/// Stores the decision, and redirects to the client.
pub(super) async fn decide(
    State(account): State<Account>,
    session: Session,
    AnyBody(Decision { request, decision }): AnyBody<Decision>,
) -> Result<Response, Reply> {
    let allow = matches!(decision, Answer::Allow);
    Ok(redirect(account.decide(&session, &request, allow).await?))
}

/// 303 makes the browser send a GET without the form.
fn redirect(uri: String) -> Response {
    (StatusCode::SEE_OTHER, PRIVATE, [(header::LOCATION, uri)]).into_response()
}
