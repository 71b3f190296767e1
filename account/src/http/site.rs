//! The account site: server-rendered pages that need no script.
//!
//! Handlers call the methods of [`Account`], like those of the HTTP API. The templates are in `account/templates`.

mod application;
mod entity;
mod gateway;
mod home;
mod oauth;
mod page;
mod user;

use axum::{
    Router,
    routing::{get, post},
};

use self::{
    application as applications,
    application::{access_keys, euis},
    entity::{SiteEntity, collaborators},
    gateway as gateways,
    oauth::{code, consent},
    user::{login, profile, provider, register},
};
pub(crate) use self::{
    page::{assets::assets, error::html_errors, viewer::MaybeViewer},
    user::confirmation::confirm,
};
use crate::{
    Account,
    entity::{application::Application, gateway::Gateway},
};

pub(crate) fn pages() -> Router<Account> {
    Router::new()
        .route("/", get(home::show))
        .merge(users())
        .merge(applications())
        .merge(gateways())
        .merge(collaborators::<Application>())
        .merge(collaborators::<Gateway>())
}

/// Registration, login, profile and consent.
fn users() -> Router<Account> {
    Router::new()
        .route("/register", get(register::show).post(register::register))
        .route("/users/login", get(login::show).post(login::log_in))
        .route("/users/login/{provider}", get(provider::begin))
        .route("/users/login/{provider}/callback", get(provider::finish))
        .route("/logout", post(login::log_out))
        .route("/users/profile", get(profile::show).post(profile::change))
        .route("/users/profile/password", post(profile::change_password))
        .route("/users/profile/confirmation", post(profile::resend_confirmation))
        .route("/users/profile/clients/{client}/revoke", post(profile::revoke))
        .route("/users/profile/logins", post(provider::unlink))
        .route("/users/profile/logins/{provider}", get(provider::ask_link).post(provider::link))
        .route("/users/consent", get(consent::ask))
        .route("/oauth/callback/{client}", get(code::show))
}

fn applications() -> Router<Account> {
    Router::new()
        .route("/my/applications", get(applications::list).post(applications::create))
        .route("/my/new-application", get(applications::new))
        .route("/my/applications/{app_id}", get(applications::show).post(applications::rename))
        .route("/my/applications/{app_id}/delete", get(applications::ask_delete).post(applications::delete))
        .route("/my/applications/{app_id}/restore", post(applications::restore))
        .route("/my/applications/{app_id}/euis", post(euis::add))
        .route("/my/applications/{app_id}/euis/{eui}/remove", get(euis::ask_remove).post(euis::remove))
        .route("/my/applications/{app_id}/access-keys", post(access_keys::create))
        .route("/my/applications/{app_id}/access-keys/{key_id}/delete", get(access_keys::ask_delete))
        .route("/my/applications/{app_id}/access-keys/{key_id}/delete", post(access_keys::delete))
}

fn gateways() -> Router<Account> {
    Router::new()
        .route("/my/gateways", get(gateways::list).post(gateways::create))
        .route("/my/new-gateway", get(gateways::new))
        .route("/my/gateways/{gateway_id}", get(gateways::show).post(gateways::change))
        .route("/my/gateways/{gateway_id}/delete", get(gateways::ask_delete).post(gateways::delete))
}

fn collaborators<E: SiteEntity + 'static>() -> Router<Account> {
    let path = format!("/my/{}/{{id}}/collaborators", E::PLURAL);
    Router::new()
        .route(&path, get(collaborators::list::<E>).post(collaborators::add::<E>))
        .route(&format!("{path}/{{username}}"), get(collaborators::show::<E>).post(collaborators::change::<E>))
        .route(
            &format!("{path}/{{username}}/remove"),
            get(collaborators::ask_remove::<E>).post(collaborators::remove::<E>),
        )
}
