//! The OpenAPI document of the HTTP API and its HTML version, generated once from the routes.

mod inputs;
mod page;
pub(crate) mod responses;

use aide::openapi::OpenApi;
use axum::body::Bytes;
use server::{
    error_response::ErrorFormat,
    openapi::{self, About},
};
use types::Kind;

pub(crate) use self::inputs::Described;

/// The document, ready to be sent.
#[derive(Debug)]
pub(crate) struct Description {
    /// As JSON.
    pub(crate) document: Bytes,
    /// As HTML.
    pub(crate) page: Bytes,
}

impl Description {
    pub(crate) fn of(document: &OpenApi) -> Self {
        // A document has string keys only, so it always is JSON.
        let json = serde_json::to_value(document).unwrap_or_default();
        // Rendering into a string fails only if a template does, and this one has no code that can.
        let page = page::render(&json).unwrap_or_default();
        Self { document: json.to_string().into(), page: page.into() }
    }
}

/// The parts of the document that do not come from the routes.
pub(crate) fn about() -> About {
    About {
        title: "Airlock account service",
        description: "Users, applications, gateways, components, OAuth clients, and the tokens that grant access \
                      to them. Implements the account API of The Things Network v2.\n\n`/applications`, `/gateways` \
                      and `/components` are also served without `/api/v2`, where old clients look for them. A method \
                      that a path does not support is answered with 405.",
        tags: &[
            "Users",
            "OAuth 2.0",
            "Keys",
            "Applications",
            "Gateways",
            "Frequency plans",
            "Components",
            "OAuth clients",
            "Documentation",
        ],
        credentials: vec![
            (
                "token",
                openapi::bearer(
                    "A token from `/users/token`. Operations on an application, gateway or component need a token \
                     with that entity in its scope: exchange yours at `/users/restrict-token`.",
                ),
            ),
            (
                "key",
                openapi::header(
                    "Authorization",
                    "`Key <access key>`: an access key of the application, or the key of the gateway.",
                ),
            ),
            (
                "session",
                openapi::cookie(
                    "session",
                    "The session of a user who logged in to the site. Valid for the profile only.",
                ),
            ),
            ("client", openapi::basic("Id and secret of an OAuth client.")),
        ],
        errors: ErrorFormat::Account,
        failures: &[Kind::Unavailable, Kind::Exhausted],
    }
}
