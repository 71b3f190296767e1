//! The HTTP API: routes under `/api/v2`, and the OAuth endpoints and keys at the root.
//!
//! Routes that v2 clients call without the prefix are at the root, too.

mod authorize;
mod clients;
mod description;
mod entities;
mod frequency_plans;
mod sessions;
mod tokens;
mod users;

use aide::{
    axum::{
        ApiRouter,
        routing::{ApiMethodRouter, delete_with, get_with, post_with},
    },
    transform::TransformOperation,
};
use api::rest::account::{ErrorBody, User};
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{Html, Response},
    routing::any,
};
use schemars::JsonSchema;
use serde_json::Value;
use server::{
    json::Json,
    openapi::{self, OperationExt, doc},
    serve::run_to_end,
};
use types::Kind;

use crate::{
    Account, Error,
    http::{
        body, cookie,
        error::{HttpError, OAuthBody},
        openapi::{Description, about},
        peer, site,
    },
};

/// A failure of an OAuth endpoint: in the format of OAuth 2.0 or, if the request cannot be read, in that of this API.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum OAuthFailure {
    OAuth(OAuthBody<'static>),
    Invalid(ErrorBody),
}

impl Account {
    /// The router of the whole HTTP API and the site.
    pub fn router(&self) -> Router {
        let (router, document) = openapi::generate(about(), || self.routes());
        self.description.get_or_init(|| Description::of(&document));
        let router = router
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(self.clone(), reload_signing_keys))
            .layer(from_fn_with_state(self.clone(), add_hsts))
            .layer(from_fn_with_state(self.clone(), site::html_errors))
            .layer(from_fn_with_state(self.clone(), peer::log_denied_requests))
            .with_state(self.clone());
        run_to_end(router, body::BYTES_MAX)
    }

    fn routes(&self) -> ApiRouter<Self> {
        let entities = entities::routes();
        let same_site = from_fn_with_state(self.clone(), cookie::same_site);
        let api = ApiRouter::new()
            .merge(users().layer(same_site.clone()))
            .merge(profile().layer(from_fn_with_state(self.clone(), cookie::same_site_or_token)))
            .merge(clients())
            .merge(frequency_plans())
            .merge(description())
            .merge(entities.clone());
        ApiRouter::new()
            .nest("/api/v2", api)
            .merge(Router::from(entities))
            .merge(authorization().merge(site::pages()).layer(same_site))
            .merge(site::assets())
            .route("/{*path}", any(path_not_found))
            .merge(tokens())
            .merge(keys())
    }
}

/// The fallback for unknown paths, inside the layers that turn errors into pages.
async fn path_not_found() -> HttpError {
    Error::PathNotFound.into()
}

/// The same for unsupported methods.
async fn method_not_allowed() -> HttpError {
    Error::MethodNotAllowed.into()
}

/// Registration and sessions; for operators, all users.
fn users() -> ApiRouter<Account> {
    let all = get_with(
        users::list,
        doc(
            "listUsers",
            "List all users, at most 100 on a page, in order of their names. Only for operators, with the scope \
             `profile` and a token of the console or another first-party client. A search looks at 500 users for each \
             page, so a page may have none and still have a next one.",
        ),
    )
    .post_with(users::register, |op| {
        op.doc(
            "register",
            "Register a user. Sends a mail to confirm the address. The response sets the cookie `session`. \
             Registrations per client address are limited.",
        )
        .fails(&[Kind::Denied])
    });
    let one = get_with(
        users::get,
        doc("getUser", "Get a user, with their applications and gateways. Only for operators, like the list."),
    );
    let log_in = post_with(sessions::log_in, |op| {
        op.doc("logIn", "Log in to the site. The response sets the cookie `session`.")
            .public()
            .fails(&[Kind::Unauthenticated, Kind::Denied])
    });
    ApiRouter::new()
        .api_route("/users", all)
        .api_route("/users/{user_id}", one)
        .api_route("/users/login", log_in)
        .api_route("/users/logout", log_out("logOut"))
        .with_path_items(|path| path.tag("Users"))
}

fn log_out(id: &str) -> ApiMethodRouter<Account> {
    post_with(sessions::log_out, |op| op.doc(id, "Log out of the site").public().fails(&[Kind::Denied]))
}

/// Routes for users about themselves, with a token or a session.
fn profile() -> ApiRouter<Account> {
    let me = get_with(users::me, doc("getProfile", "Get your profile. A token needs the scope `profile`.")).patch_with(
        users::update,
        |op| {
            op.doc(
                "updateProfile",
                "Change your profile or password. A new password needs the old one and ends every other \
                 session, grant and token.",
            )
            .fails(&[Kind::Exhausted])
        },
    );
    let confirmation = post_with(users::resend_confirmation, |op| {
        op.doc("askConfirmation", "Send the confirmation mail again").fails(&[Kind::Exhausted])
    });
    let clients = get_with(users::clients, doc("listAuthorizedClients", "List the clients that may act for you"));
    let client = delete_with(
        users::revoke_client,
        doc("revokeClient", "Revoke a client's access to your account. Ends its grants and tokens."),
    );
    ApiRouter::new()
        .api_route("/users/me", me)
        .api_route("/users/me/emails/validate_email", confirmation)
        .api_route("/users/me/authorized-clients", clients)
        .api_route("/users/me/authorized-clients/{client}", client)
        .with_path_items(|path| path.tag("Users"))
}

/// Adds the errors that OAuth 2.0 defines.
fn fails_as_oauth(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST).fails_with::<OAuthBody<'_>>(StatusCode::UNAUTHORIZED)
}

/// Routes that browsers open: OAuth authorization, and the link in a mail.
fn authorization() -> ApiRouter<Account> {
    let authorize = get_with(authorize::authorize, |op| {
        op.doc(
            "authorize",
            "Request an authorization code from a user (RFC 6749, with PKCE as in RFC 7636). Errors are sent to the \
             client's redirect URI. If that is not valid, they are shown to the user instead.",
        )
        .public()
        .response::<200, Html<String>>()
        .with(fails_as_oauth)
    })
    .post_with(authorize::decide, |op| {
        op.doc("decide", "Submit the user's decision on the consent page")
            .fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST)
    });
    let confirm = get_with(site::confirm, |op| {
        op.doc("confirmEmail", "Confirm an e-mail address with the link from a mail").response::<200, Json<User>>()
    });
    ApiRouter::new().api_route("/users/authorize", authorize).with_path_items(|path| path.tag("OAuth 2.0")).merge(
        ApiRouter::new()
            .api_route("/users/logout", log_out("logOutAtRoot"))
            .api_route("/users/emails/validate_email/{token}", confirm)
            .with_path_items(|path| path.tag("Users")),
    )
}

fn tokens() -> ApiRouter<Account> {
    let token = post_with(tokens::token, |op| {
        op.doc(
            "token",
            "Request a token. Grants `password`, `authorization_code` and `refresh_token`. The client \
             authenticates with Basic credentials or in the body.",
        )
        .public()
        .with(fails_as_oauth)
    });
    let revoke = post_with(tokens::revoke, |op| {
        op.doc(
            "revoke",
            "Revoke a refresh token (RFC 7009). Its grant ends at once; an unknown token is not an error. Access \
             tokens of the grant stay valid until they expire, for at most one hour, unless the user revokes the \
             client's access.",
        )
        .public()
        .with(fails_as_oauth)
    });
    let restrict = post_with(tokens::restrict, |op| {
        op.doc(
            "restrictToken",
            "Exchange your token for one with other scopes. The new token can be limited to up to ten applications, \
             gateways and components. Only a token from a login can be exchanged, and that of the operator's handler, for \
             one with the right `devices` to applications.",
        )
        .fails(&[Kind::NotFound])
    });
    let metadata =
        get_with(tokens::metadata, doc("getMetadata", "Get the metadata of the authorization server (RFC 8414)"));
    ApiRouter::new()
        .api_route("/users/token", token)
        .api_route("/users/revoke", revoke)
        .api_route("/users/restrict-token", restrict)
        .api_route("/.well-known/oauth-authorization-server", metadata)
        .with_path_items(|path| path.tag("OAuth 2.0"))
}

fn keys() -> ApiRouter<Account> {
    ApiRouter::new()
        .api_route("/key", get_with(tokens::key, doc("getKey", "Get the current public key for verifying tokens")))
        .api_route(
            "/.well-known/jwks.json",
            get_with(tokens::jwks, doc("getKeySet", "Get all public keys for verifying tokens")),
        )
        .with_path_items(|path| path.tag("Keys"))
}

/// Reloads the signing keys first, because another instance may have rotated them.
async fn reload_signing_keys(State(account): State<Account>, request: Request, next: Next) -> Response {
    account.reload_signing_keys().await;
    next.run(request).await
}

/// Tells browsers to use TLS only (HSTS), if the public URL does.
async fn add_hsts(State(account): State<Account>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if account.public_url.is_https() {
        let year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}

fn frequency_plans() -> ApiRouter<Account> {
    ApiRouter::new()
        .api_route(
            "/frequency-plans",
            get_with(frequency_plans::list, doc("listFrequencyPlans", "List the frequency plans")),
        )
        .api_route(
            "/frequency-plans/{plan_id}",
            get_with(
                frequency_plans::get,
                doc("getFrequencyPlan", "Get a frequency plan as configuration of a packet forwarder"),
            ),
        )
        .with_path_items(|path| path.tag("Frequency plans"))
}

fn description() -> ApiRouter<Account> {
    let document = get_with(description::document, |op| {
        op.doc("getDescription", "Get the OpenAPI document").response::<200, Json<serde_json::Map<String, Value>>>()
    });
    let page = get_with(description::page, |op| {
        op.doc("getDocs", "Get the API documentation as a web page").response::<200, Html<String>>()
    });
    ApiRouter::new()
        .api_route("/openapi.json", document)
        .api_route("/docs", page)
        .with_path_items(|path| path.tag("Documentation"))
}

fn clients() -> ApiRouter<Account> {
    let all = get_with(
        clients::list,
        doc(
            "listClients",
            "List the OAuth clients that you registered. All calls for clients need the scope `clients`.",
        ),
    )
    .post_with(
        clients::create,
        doc("createClient", "Register an OAuth client. It can be used once the operator has approved it."),
    );
    let one = get_with(clients::get, doc("getClient", "Get an OAuth client"))
        .patch_with(
            clients::update,
            doc(
                "updateClient",
                "Change an OAuth client. If its redirect URIs, scopes or grants change, the operator must approve it \
                 again.",
            ),
        )
        .delete_with(clients::delete, doc("deleteClient", "Delete an OAuth client. Its id stays taken."));
    ApiRouter::new()
        .api_route("/clients", all)
        .api_route("/clients/{name}", one)
        .with_path_items(|path| path.tag("OAuth clients"))
}
