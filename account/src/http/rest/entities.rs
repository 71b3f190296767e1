//! The routes of applications, gateways and components, which are also served without `/api/v2`.

mod access_keys;
mod applications;
mod collaborators;
mod components;
mod euis;
pub(super) mod gateways;

use aide::axum::{
    ApiRouter,
    routing::{get_with, post_with, put_with},
};
use api::rest::account::AccessKey;
use axum::http::StatusCode;
use server::{
    json::Json,
    openapi::{OperationExt, doc},
};
use types::Kind;

use super::tokens;
use crate::{
    Account,
    entity::{application::Application, component::Component, gateway::Gateway},
    http::{error::ExchangeBody, openapi::Described, path::EntityInPath},
};

pub(super) fn routes() -> ApiRouter<Account> {
    ApiRouter::new().merge(applications()).merge(gateways()).merge(components())
}

fn applications() -> ApiRouter<Account> {
    let all = get_with(applications::list, doc("listApplications", "List your applications. Needs the scope `apps`."))
        .post_with(applications::create, |op| {
            op.doc(
                "createApplication",
                "Create an application. Needs the scope `apps`. You become its owner and first collaborator. Without \
                 EUIs in the request it gets one, and without access keys a `default key`.",
            )
        });
    let one = get_with(applications::get, |op| {
        op.doc("getApplication", "Get an application. What you may not see is omitted.").security_requirement("key")
    })
    .patch_with(applications::update, |op| {
        op.doc(
            "updateApplication",
            "Rename an application, or hand it over to a collaborator with all rights. Needs the right `settings`; only \
             the owner can hand it over.",
        )
        .fails(&[Kind::NotFound])
    })
    .delete_with(
        applications::delete,
        doc(
            "deleteApplication",
            "Delete an application. Needs the right `delete`. It can be restored; its id stays taken.",
        ),
    );
    let restore = post_with(
        applications::restore,
        doc("restoreApplication", "Restore a deleted application. Needs the right `delete`."),
    );
    ApiRouter::new()
        .api_route("/applications", all)
        .api_route("/applications/{app_id}", one)
        .api_route("/applications/{app_id}/restore", restore)
        .merge(application_rights())
        .merge(exchanges())
        .merge(euis())
        .merge(access_keys())
        .merge(collaborators::<Application>("/applications/{app_id}", "Application", "collaborators"))
        .with_path_items(|path| path.tag("Applications"))
}

/// The rights that whoever asks has, or others.
fn application_rights() -> ApiRouter<Account> {
    let rights = get_with(applications::rights, |op| {
        op.doc("listApplicationRights", "List your rights to an application").security_requirement("key")
    });
    let owner = get_with(applications::owner, |op| {
        op.doc(
            "getApplicationOwner",
            "Get the owner of an application, to whom is charged what it uses. Needs any right to the application, or \
             the token of one of the operator's components.",
        )
        .security_requirement("key")
    });
    let granted = get_with(
        applications::granted,
        doc(
            "listGrantedRights",
            "List the rights to an application that a user or an access key still has, who allowed something that goes \
             on after the call, such as a webhook. Needs the token of one of the operator's components.",
        ),
    );
    ApiRouter::new()
        .api_route("/applications/{app_id}/rights", rights)
        .api_route("/applications/{app_id}/owner", owner)
        .api_route("/applications/{app_id}/granted-rights", granted)
}

fn exchanges() -> ApiRouter<Account> {
    let any = post_with(tokens::exchange, |op| {
        op.doc(
            "exchangeKey",
            "Exchange an access key for a token. Client credentials or a component's token are optional, but \
             must be valid.",
        )
        .security_requirement("token")
        .public()
        .fails(&[Kind::Denied])
        .fails_with::<ExchangeBody>(StatusCode::UNAUTHORIZED)
    });
    let of = post_with(tokens::exchange_for, |op| {
        op.doc("exchangeKeyOf", "Exchange an access key of this application for a token")
            .security_requirement("token")
            .public()
            .fails(&[Kind::Denied])
            .fails_with::<ExchangeBody>(StatusCode::UNAUTHORIZED)
    });
    ApiRouter::new().api_route("/applications/token", any).api_route("/applications/{app_id}/token", of)
}

fn euis() -> ApiRouter<Account> {
    let all = get_with(euis::list, |op| op.doc("listEuis", "List the EUIs").security_requirement("key")).post_with(
        euis::create,
        doc(
            "createEui",
            "Add an EUI from the network's block. Needs the right `settings`. Clients that accept \
             `application/json`, or send no `Accept` header, get an object.",
        ),
    );
    let one = put_with(
        euis::add,
        doc("addEui", "Add an EUI of your own. Needs the right `settings`. An EUI can belong to only one application."),
    )
    .delete_with(euis::delete, doc("deleteEui", "Remove an EUI. Needs the right `settings`."));
    ApiRouter::new().api_route("/applications/{app_id}/euis", all).api_route("/applications/{app_id}/euis/{eui}", one)
}

fn access_keys() -> ApiRouter<Account> {
    let all = get_with(
        access_keys::list,
        doc(
            "listAccessKeys",
            "List the access keys. Needs the right `settings`. The secret of a key that has more rights \
             than you is omitted.",
        ),
    )
    .post_with(access_keys::create, |op| {
        op.doc(
            "createAccessKey",
            "Create an access key. Needs the right `settings`, and every right of the key. Clients that accept \
             `application/json`, or send no `Accept` header, get the key with 201, all others 204.",
        )
        .response::<201, Json<AccessKey>>()
        .response::<204, ()>()
        .fails(&[Kind::Conflict])
    });
    let one = get_with(access_keys::get, doc("getAccessKey", "Get an access key. Needs the right `settings`."))
        .delete_with(access_keys::delete, doc("deleteAccessKey", "Delete an access key. Needs the right `settings`."));
    ApiRouter::new()
        .api_route("/applications/{app_id}/access-keys", all)
        .api_route("/applications/{app_id}/access-keys/{name}", one)
}

fn gateways() -> ApiRouter<Account> {
    let all = get_with(gateways::list, doc("listGateways", "List your gateways. Needs the scope `gateways`."))
        .post_with(gateways::create, |op| {
            op.doc(
                "createGateway",
                "Create a gateway. Needs the scope `gateways`. You become its owner and first collaborator.",
            )
            .fails(&[Kind::NotFound])
        });
    let one = get_with(gateways::get, |op| {
        op.doc(
            "getGateway",
            "Get a gateway. Without credentials, returns what is public, and the location to within a \
             kilometre. With the gateway's key, returns all that the gateway needs.",
        )
        .security_requirement("key")
        .public()
        .fails(&[Kind::Unauthenticated, Kind::Denied])
    })
    .patch_with(
        gateways::update,
        doc("updateGateway", "Change a gateway. Needs the right `gateway:settings`; only the owner can transfer it."),
    )
    .delete_with(
        gateways::delete,
        doc("deleteGateway", "Delete a gateway. Needs the right `gateway:delete`. Its id stays taken."),
    );
    let token = get_with(gateways::token, |op| {
        op.doc(
            "getGatewayToken",
            "Get a token with which the gateway connects to the network's components. Needs the gateway's key, or \
             the right `gateway:settings`.",
        )
        .security_requirement("key")
    });
    let rights = get_with(collaborators::rights::<Gateway>, |op| {
        op.doc("listGatewayRights", "List your rights to a gateway").security_requirement("key")
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
    let list = get_with(components::list, doc("listComponents", "List your components. Needs the scope `components`."));
    let create =
        post_with(components::create, doc("createComponent", "Create a component. Needs the scope `components`."));
    let one = get_with(components::get, doc("getComponent", "Get a component")).delete_with(
        components::delete,
        doc("deleteComponent", "Delete a component. Needs the right `component:delete`. Its id stays taken."),
    );
    let token = get_with(
        components::token,
        doc(
            "getComponentToken",
            "Get the token with which a component authenticates. Needs the right `component:settings`, or the \
             component's current token. The token is valid for 93 days.",
        ),
    );
    let rights =
        get_with(collaborators::rights::<Component>, doc("listComponentRights", "List your rights to a component"));
    ApiRouter::new()
        .api_route("/components", list)
        .api_route("/components/{services}", create)
        .api_route("/components/{services}/{id}", one)
        .api_route("/components/{services}/{id}/token", token)
        .api_route("/components/{services}/{id}/rights", rights)
        .merge(collaborators::<Component>("/components/{services}/{id}", "Component", "component:collaborators"))
        .with_path_items(|path| path.tag("Components"))
}

/// The routes of an entity's collaborators, which need a right.
fn collaborators<E: EntityInPath + Described + 'static>(path: &str, noun: &str, right: &str) -> ApiRouter<Account> {
    let needs = format!("Needs the right `{right}`");
    let owner = match E::OWNER_STAYS {
        true => " Nor can the owner.",
        false => " If the owner is removed, the first remaining one with all rights becomes the owner.",
    };
    let all = get_with(
        collaborators::list::<E>,
        doc(&format!("list{noun}Collaborators"), &format!("List the collaborators. {needs}.")),
    );
    let one = get_with(
        collaborators::get::<E>,
        doc(&format!("get{noun}Collaborator"), &format!("Get a collaborator. {needs}.")),
    )
    .put_with(collaborators::set::<E>, |op| {
        op.doc(
            &format!("set{noun}Collaborator"),
            &format!(
                "Set the rights of a collaborator. {needs}. You cannot grant a right that you lack, and \
                 somebody must keep `{right}`. Clients that accept `application/json` get an empty object, all \
                 others no body."
            ),
        )
        .response::<201, ()>()
        .fails(&[Kind::Conflict])
    })
    .delete_with(
        collaborators::delete::<E>,
        doc(
            &format!("delete{noun}Collaborator"),
            &format!("Remove a collaborator. {needs}. The last one with that right cannot be removed.{owner}"),
        ),
    );
    ApiRouter::new()
        .api_route(&format!("{path}/collaborators"), all)
        .api_route(&format!("{path}/collaborators/{{username}}"), one)
}
