//! `/users/authorize`: the authorization endpoint.

use aide::{
    OperationOutput,
    generate::GenContext,
    openapi::{Operation, Response as Description, StatusCode as Code},
};
use axum::{
    extract::{Query, RawQuery, State, rejection::QueryRejection},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::utf8_percent_encode;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use server::openapi::with_headers;

use crate::{
    Account, Authorization, AuthorizationRequest, Error, Session,
    http::{body::AnyBody, error::HttpError},
    public_url::QUERY_VALUE,
};

/// The user's decision, with the authorization request.
#[derive(Deserialize, JsonSchema)]
pub(super) struct DecidedRequest {
    #[serde(flatten)]
    request: AuthorizationRequest,
    decision: Decision,
    /// The client's revision on the page that asked the user. If the client has changed since, the decision does not
    /// count.
    #[serde(default, deserialize_with = "number")]
    #[schemars(with = "Option<u32>")]
    revision: Option<u32>,
}

/// May the client do it?
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Decision {
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
) -> Result<Redirect, HttpError> {
    // A parameter that comes twice is refused here, so that no two readers can see two requests.
    let Query(request) = request.map_err(|error| Error::Body(error.body_text()))?;
    let query = query.unwrap_or_default();
    Ok(match account.authorize(session.as_ref(), &request).await? {
        Authorization::Redirect(uri) => Redirect(uri),
        Authorization::LogIn(_) => {
            let again = format!("/users/authorize?{query}");
            Redirect(format!("/users/login?next={}", utf8_percent_encode(&again, QUERY_VALUE)))
        }
        Authorization::Ask(_) => Redirect(format!("/users/consent?{query}")),
    })
}

/// Handles the user's decision and redirects to the client.
pub(super) async fn decide(
    State(account): State<Account>,
    session: Session,
    AnyBody(DecidedRequest { request, decision, revision }): AnyBody<DecidedRequest>,
) -> Result<Redirect, HttpError> {
    let allow = matches!(decision, Decision::Allow);
    Ok(Redirect(account.decide(&session, &request, (allow, revision)).await?))
}

/// A number in JSON or as text: in a form with flattened parts, every value is text.
fn number<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Text(String),
    }
    match Option::deserialize(input)? {
        None => Ok(None),
        Some(Written::Number(number)) => Ok(Some(number)),
        Some(Written::Text(text)) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

/// With 303 the browser sends a new request, without the form.
pub(super) struct Redirect(String);

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        (StatusCode::SEE_OTHER, PRIVATE, [(header::LOCATION, self.0)]).into_response()
    }
}

impl OperationOutput for Redirect {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Vec<(Option<Code>, Description)> {
        let description = "To the client, to the login, or to the page that asks the user.".to_owned();
        let redirect = Description { description, ..Description::default() };
        vec![(Some(Code::Code(303)), with_headers(redirect, &[("Location", "string", "Where to go.")]))]
    }
}
