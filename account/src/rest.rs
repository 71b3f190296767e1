//! The HTTP API: routes under `/api/v2`, and the OAuth endpoints and keys at the root.
//!
//! Routes that v2 clients call without the prefix are at the root, too.

mod access_keys;
mod applications;
mod authorize;
mod clients;
mod collaborators;
mod components;
mod description;
mod euis;
mod frequency_plans;
mod gateways;
mod sessions;
mod tokens;
mod users;

use aide::axum::{
    ApiRouter,
    routing::{ApiMethodRouter, delete_with, get_with, post_with, put_with},
};
use api::rest::account::{AccessKey, ErrorBody, User};
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
    openapi::{self, OperationExt, described, named},
};
use types::Kind;

use crate::{
    Account, Error,
    application::Application,
    component::Component,
    gateway::Gateway,
    http::{
        cookie,
        path::EntityInPath,
        peer,
        reply::{ExchangeBody, OAuthBody, Reply},
    },
    openapi::{Described, Description, about},
    site,
};

/// What OAuth 2.0 refuses in its own words, as far as the request can be read.
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
        router
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(self.clone(), reload_signing_keys))
            .layer(from_fn_with_state(self.clone(), add_hsts))
            .layer(from_fn_with_state(self.clone(), site::html_errors))
            .layer(from_fn_with_state(self.clone(), peer::log_denied_requests))
            .with_state(self.clone())
    }

    fn routes(&self) -> ApiRouter<Self> {
        let entities = ApiRouter::new().merge(applications()).merge(gateways()).merge(components());
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
async fn path_not_found() -> Reply {
    Error::PathNotFound.into()
}

/// The same for unsupported methods.
async fn method_not_allowed() -> Reply {
    Error::MethodNotAllowed.into()
}

/// Registration and sessions.
fn users() -> ApiRouter<Account> {
    let register = post_with(users::register, |op| {
        op.id("register")
            .summary("Register")
            .description(
                "A mail asks to confirm the address. The reply sets the cookie `session`. The same address \
                          can register only so often.",
            )
            .fails(&[Kind::Denied])
    });
    let log_in = post_with(sessions::log_in, |op| {
        op.id("logIn")
            .summary("Log in at the site")
            .description("The reply sets the cookie `session`.")
            .public()
            .fails(&[Kind::Unauthenticated, Kind::Denied])
    });
    ApiRouter::new()
        .api_route("/users", register)
        .api_route("/users/login", log_in)
        .api_route("/users/logout", log_out("logOut"))
        .with_path_items(|path| path.tag("Users"))
}

fn log_out(id: &str) -> ApiMethodRouter<Account> {
    post_with(sessions::log_out, |op| op.id(id).summary("Log out at the site").public().fails(&[Kind::Denied]))
}

/// What people do for themselves, with a token or a session.
fn profile() -> ApiRouter<Account> {
    let me = get_with(users::me, described("getProfile", "Get your profile", "A token needs the scope `profile`."))
        .patch_with(users::update, |op| {
            op.id("updateProfile")
                .summary("Change your profile or password")
                .description("A new password needs the old one and ends every other session, grant and token.")
                .fails(&[Kind::Exhausted])
        });
    let confirmation = post_with(users::resend_confirmation, |op| {
        op.id("askConfirmation").summary("Send the mail again that confirms your address").fails(&[Kind::Exhausted])
    });
    let clients = get_with(users::clients, named("listAuthorizedClients", "List the clients that may act for you"));
    let client = delete_with(
        users::revoke_client,
        described("revokeClient", "Revoke what a client may do", "Ends its grants and tokens."),
    );
    ApiRouter::new()
        .api_route("/users/me", me)
        .api_route("/users/me/emails/validate_email", confirmation)
        .api_route("/users/me/authorized-clients", clients)
        .api_route("/users/me/authorized-clients/{client}", client)
        .with_path_items(|path| path.tag("Users"))
}

/// Where browsers go: OAuth authorization, and the link of a mail.
fn authorization() -> ApiRouter<Account> {
    let authorize = get_with(authorize::authorize, |op| {
        op.id("authorize")
            .summary("Ask a user for a code")
            .description("RFC 6749, with PKCE (RFC 7636). An error that cannot be told to the client is answered here.")
            .public()
            .response::<200, Html<String>>()
            .fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST)
            .fails_with::<OAuthBody<'_>>(StatusCode::UNAUTHORIZED)
    })
    .post_with(authorize::decide, |op| {
        op.id("decide").summary("Answer for the user").fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST)
    });
    let confirm = get_with(site::confirm, |op| {
        op.id("confirmEmail").summary("Confirm an address with the link of a mail").response::<200, Json<User>>()
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
        op.id("token")
            .summary("Ask for a token")
            .description(
                "Grants `password`, `authorization_code` and `refresh_token`. The client authenticates with \
                          Basic credentials or in the body.",
            )
            .public()
            .fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST)
            .fails_with::<OAuthBody<'_>>(StatusCode::UNAUTHORIZED)
    });
    let revoke = post_with(tokens::revoke, |op| {
        op.id("revoke")
            .summary("End the grant of a refresh token")
            .description(
                "RFC 7009. The grant ends at once, whether or not there was one. Its access tokens stay valid \
                          until they expire, an hour at most; when a user revokes what a client may do, they end too.",
            )
            .public()
            .fails_with::<OAuthFailure>(StatusCode::BAD_REQUEST)
            .fails_with::<OAuthBody<'_>>(StatusCode::UNAUTHORIZED)
    });
    let restrict = post_with(tokens::restrict, |op| {
        op.id("restrictToken")
            .summary("Exchange your token for one with other scopes")
            .description(
                "The new token may name up to ten applications, gateways and components. Only a token from a \
                          login can be exchanged.",
            )
            .fails(&[Kind::NotFound])
    });
    let metadata =
        get_with(tokens::metadata, named("getMetadata", "Get the metadata of the authorization server (RFC 8414)"));
    ApiRouter::new()
        .api_route("/users/token", token)
        .api_route("/users/revoke", revoke)
        .api_route("/users/restrict-token", restrict)
        .api_route("/.well-known/oauth-authorization-server", metadata)
        .with_path_items(|path| path.tag("OAuth 2.0"))
}

fn keys() -> ApiRouter<Account> {
    ApiRouter::new()
        .api_route("/key", get_with(tokens::key, named("getKey", "Get the key that verifies tokens")))
        .api_route(
            "/.well-known/jwks.json",
            get_with(tokens::jwks, named("getKeySet", "Get every key that verifies tokens")),
        )
        .with_path_items(|path| path.tag("Keys"))
}

/// Reloads the signing keys first, because another instance may have rotated them.
async fn reload_signing_keys(State(account): State<Account>, request: Request, next: Next) -> Response {
    account.signer.reload_if_due(&account.documents, &account.keys).await;
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

fn applications() -> ApiRouter<Account> {
    let all = get_with(
        applications::list,
        described("listApplications", "List your applications", "Needs the scope `apps`."),
    )
    .post_with(applications::create, |op| {
        op.id("createApplication").summary("Create an application").description(
            "Needs the scope `apps`. You become its first collaborator. Without EUIs it is given one, \
                          without access keys a `default key`.",
        )
    });
    let one = get_with(applications::get, |op| {
        op.id("getApplication")
            .summary("Get an application")
            .description("Shows what you may see of it.")
            .security_requirement("key")
    })
    .patch_with(
        applications::update,
        described("updateApplication", "Rename an application", "Needs the right `settings`."),
    )
    .delete_with(
        applications::delete,
        described(
            "deleteApplication",
            "Delete an application",
            "Needs the right `delete`. It can be restored; its id stays taken.",
        ),
    );
    let restore = post_with(
        applications::restore,
        described("restoreApplication", "Restore a deleted application", "Needs the right `delete`."),
    );
    let rights = get_with(applications::rights, |op| {
        op.id("listApplicationRights").summary("List what you may do").security_requirement("key")
    });
    ApiRouter::new()
        .api_route("/applications", all)
        .api_route("/applications/{app_id}", one)
        .api_route("/applications/{app_id}/restore", restore)
        .api_route("/applications/{app_id}/rights", rights)
        .merge(exchanges())
        .merge(euis())
        .merge(access_keys())
        .merge(collaborators::<Application>("/applications/{app_id}", "Application", "collaborators"))
        .with_path_items(|path| path.tag("Applications"))
}

fn exchanges() -> ApiRouter<Account> {
    let any = post_with(tokens::exchange, |op| {
        op.id("exchangeKey")
            .summary("Exchange an access key for a token")
            .description("Client credentials or a component's token are optional, but must be valid.")
            .security_requirement("token")
            .public()
            .fails(&[Kind::Denied])
            .fails_with::<ExchangeBody>(StatusCode::UNAUTHORIZED)
    });
    let of = post_with(tokens::exchange_for, |op| {
        op.id("exchangeKeyOf")
            .summary("Exchange an access key of this application for a token")
            .security_requirement("token")
            .public()
            .fails(&[Kind::Denied])
            .fails_with::<ExchangeBody>(StatusCode::UNAUTHORIZED)
    });
    ApiRouter::new().api_route("/applications/token", any).api_route("/applications/{app_id}/token", of)
}

fn euis() -> ApiRouter<Account> {
    let all = get_with(euis::list, |op| op.id("listEuis").summary("List the EUIs").security_requirement("key"))
        .post_with(
            euis::create,
            described(
                "createEui",
                "Add an EUI of the network's block",
                "Needs the right `settings`. Clients that accept `application/json` get an object.",
            ),
        );
    let one = put_with(
        euis::add,
        described("addEui", "Add an EUI of your own", "Needs the right `settings`. An EUI belongs to one application."),
    )
    .delete_with(euis::delete, described("deleteEui", "Remove an EUI", "Needs the right `settings`."));
    ApiRouter::new().api_route("/applications/{app_id}/euis", all).api_route("/applications/{app_id}/euis/{eui}", one)
}

fn access_keys() -> ApiRouter<Account> {
    let all = get_with(
        access_keys::list,
        described(
            "listAccessKeys",
            "List the access keys",
            "Needs the right `settings`. Leaves out a key itself where it may do more than you.",
        ),
    )
    .post_with(access_keys::create, |op| {
        op.id("createAccessKey")
            .summary("Create an access key")
            .description(
                "Needs the right `settings`, and every right of the key. Clients that accept \
                          `application/json` get the key with 201, all others 204.",
            )
            .response::<201, Json<AccessKey>>()
            .response::<204, ()>()
            .fails(&[Kind::Conflict])
    });
    let one = get_with(access_keys::get, described("getAccessKey", "Get an access key", "Needs the right `settings`."))
        .delete_with(
            access_keys::delete,
            described("deleteAccessKey", "Delete an access key", "Needs the right `settings`."),
        );
    ApiRouter::new()
        .api_route("/applications/{app_id}/access-keys", all)
        .api_route("/applications/{app_id}/access-keys/{name}", one)
}

fn gateways() -> ApiRouter<Account> {
    let all = get_with(gateways::list, described("listGateways", "List your gateways", "Needs the scope `gateways`."))
        .post_with(gateways::create, |op| {
            op.id("createGateway")
                .summary("Create a gateway")
                .description("Needs the scope `gateways`. You become its owner and first collaborator.")
                .fails(&[Kind::NotFound])
        });
    let one = get_with(gateways::get, |op| {
        op.id("getGateway")
            .summary("Get a gateway")
            .description(
                "Without credentials, shows what is public, with the location within a kilometre. With the \
                          gateway's key, shows all that the gateway needs.",
            )
            .security_requirement("key")
            .public()
            .fails(&[Kind::Unauthenticated, Kind::Denied])
    })
    .patch_with(
        gateways::update,
        described(
            "updateGateway",
            "Change a gateway",
            "Needs the right `gateway:settings`; only the owner can give it away.",
        ),
    )
    .delete_with(
        gateways::delete,
        described("deleteGateway", "Delete a gateway", "Needs the right `gateway:delete`. Its id stays taken."),
    );
    let token = get_with(gateways::token, |op| {
        op.id("getGatewayToken")
            .summary("Get a token for the network's components")
            .description("Needs the gateway's key, or the right `gateway:settings`.")
            .security_requirement("key")
    });
    let rights = get_with(collaborators::rights::<Gateway>, |op| {
        op.id("listGatewayRights").summary("List what you may do").security_requirement("key")
    });
    ApiRouter::new()
        .api_route("/gateways", all)
        .api_route("/gateways/{gw_id}", one)
        .api_route("/gateways/{gw_id}/token", token)
        .api_route("/gateways/{gw_id}/rights", rights)
        .merge(collaborators::<Gateway>("/gateways/{gw_id}", "Gateway", "gateway:collaborators"))
        .with_path_items(|path| path.tag("Gateways"))
}

fn components() -> ApiRouter<Account> {
    let list = get_with(
        components::list,
        described("listComponents", "List your components", "Needs the scope `components`."),
    );
    let create = post_with(
        components::create,
        described("createComponent", "Create a component", "Needs the scope `components`."),
    );
    let one = get_with(components::get, named("getComponent", "Get a component")).delete_with(
        components::delete,
        described("deleteComponent", "Delete a component", "Needs the right `component:delete`. Its id stays taken."),
    );
    let token = get_with(
        components::token,
        described(
            "getComponentToken",
            "Get the token with which a component authenticates",
            "Needs the right `component:settings`. The token is valid for 93 days.",
        ),
    );
    let rights = get_with(collaborators::rights::<Component>, named("listComponentRights", "List what you may do"));
    ApiRouter::new()
        .api_route("/components", list)
        .api_route("/components/{services}", create)
        .api_route("/components/{services}/{id}", one)
        .api_route("/components/{services}/{id}/token", token)
        .api_route("/components/{services}/{id}/rights", rights)
        .merge(collaborators::<Component>("/components/{services}/{id}", "Component", "component:collaborators"))
        .with_path_items(|path| path.tag("Components"))
}

/// The collaborators of the entities at a path, and the right that one needs.
fn collaborators<E: EntityInPath + Described + 'static>(path: &str, noun: &str, right: &str) -> ApiRouter<Account> {
    let needs = format!("Needs the right `{right}`");
    let all = get_with(
        collaborators::list::<E>,
        described(&format!("list{noun}Collaborators"), "List the collaborators", &format!("{needs}.")),
    );
    let one = get_with(
        collaborators::get::<E>,
        described(&format!("get{noun}Collaborator"), "Get a collaborator", &format!("{needs}.")),
    )
    .put_with(collaborators::set::<E>, |op| {
        op.id(&format!("set{noun}Collaborator"))
            .summary("Set the rights of a collaborator")
            .description(&format!(
                "{needs}. Nobody can give a right that they do not have, and somebody must keep `{right}`. Clients \
                 that accept `application/json` get an empty object, all others no body."
            ))
            .response::<201, ()>()
            .fails(&[Kind::Conflict])
    })
    .delete_with(
        collaborators::delete::<E>,
        described(
            &format!("delete{noun}Collaborator"),
            "Remove a collaborator",
            &format!("{needs}; the last one who has it stays."),
        ),
    );
    ApiRouter::new()
        .api_route(&format!("{path}/collaborators"), all)
        .api_route(&format!("{path}/collaborators/{{username}}"), one)
}

fn frequency_plans() -> ApiRouter<Account> {
    ApiRouter::new()
        .api_route(
            "/frequency-plans",
            get_with(frequency_plans::list, named("listFrequencyPlans", "List the frequency plans")),
        )
        .api_route(
            "/frequency-plans/{plan_id}",
            get_with(frequency_plans::get, named("getFrequencyPlan", "Get the configuration of a packet forwarder")),
        )
        .with_path_items(|path| path.tag("Frequency plans"))
}

fn description() -> ApiRouter<Account> {
    let document = get_with(description::document, |op| {
        op.id("getDescription").summary("Get this description").response::<200, Json<serde_json::Map<String, Value>>>()
    });
    let page = get_with(description::page, |op| {
        op.id("getDocs").summary("Read this description").response::<200, Html<String>>()
    });
    ApiRouter::new()
        .api_route("/openapi.json", document)
        .api_route("/docs", page)
        .with_path_items(|path| path.tag("This description"))
}

fn clients() -> ApiRouter<Account> {
    let all = get_with(
        clients::list,
        described(
            "listClients",
            "List the OAuth clients that you registered",
            "Needs the scope `clients`, as all of these do.",
        ),
    )
    .post_with(
        clients::create,
        described("createClient", "Register an OAuth client", "The client waits for the operator's approval."),
    );
    let one = get_with(clients::get, named("getClient", "Get an OAuth client"))
        .patch_with(
            clients::update,
            described(
                "updateClient",
                "Change an OAuth client",
                "With another address, other scopes or grants it waits for approval again.",
            ),
        )
        .delete_with(clients::delete, described("deleteClient", "Delete an OAuth client", "Its id stays taken."));
    ApiRouter::new()
        .api_route("/clients", all)
        .api_route("/clients/{name}", one)
        .with_path_items(|path| path.tag("OAuth clients"))
}
