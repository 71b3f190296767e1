//! The pages: server-rendered, and without scripts except where something moves.

mod applications;
mod bridges;
mod device;
mod devices;
mod failure;
mod functions;
mod messages;
mod operator;
mod page;
mod same_site;
mod silence;
mod viewer;
mod webhooks;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    response::Redirect,
    routing::{any, get, post},
};
use server::serve::run_to_end;

use crate::{Console, Error, console::ConsoleAddress};

use self::{
    device::{change, delete, downlinks, uplinks},
    devices::{charts, import, many, new},
    failure::Failure,
    functions::{candidate, correction, versions},
    messages::{again, live, message},
    page::{assets, compression::compress},
    viewer::{draft, login},
    webhooks::webhook,
};

/// Maximum size of a form, in bytes, as listeners have it: a function of 512 KiB whose characters take three bytes each,
/// and shorter ones beside it.
const FORM_BYTES_MAX: usize = 2 << 20;

impl Console {
    /// The router of all pages, below `/console`.
    pub fn router(&self) -> Router {
        let pages = Router::new()
            .merge(logins())
            .merge(in_applications())
            // No method tells others that these pages are there.
            .route("/console/operator", get(operator::show).fallback(not_found))
            .route("/console/operator/audit", get(operator::audit::show).fallback(not_found))
            .route("/console/operator/users", get(operator::users::list).fallback(not_found))
            .route("/console/operator/users/{user_id}", get(operator::user::show).fallback(not_found))
            .route("/console/bridges", get(bridges::show).fallback(not_found))
            .route("/console/{*path}", any(not_found));
        let trial = get(bridges::new::show).post(bridges::new::submit).fallback(not_found);
        let trial = Router::new().route("/console/bridges/new", trial);
        let router = run_to_end(self.in_layers(pages), FORM_BYTES_MAX)
            // It changes nothing, so it ends when its browser hangs up.
            .merge(self.in_layers(trial))
            .merge(assets().layer(from_fn(compress)).with_state(self.clone()));
        match *self.place {
            ConsoleAddress::WithAccount { .. } => router,
            ConsoleAddress::Alone { .. } => router.route("/", get(async || Redirect::to("/console"))),
        }
    }

    fn in_layers(&self, pages: Router<Self>) -> Router {
        pages
            .layer(from_fn_with_state(self.clone(), draft::keep_drafts))
            .layer(from_fn_with_state(self.clone(), same_site::check))
            .layer(from_fn_with_state(self.clone(), page::error::show_failures))
            .layer(from_fn_with_state(self.clone(), page::allow_account))
            .layer(from_fn(compress))
            .with_state(self.clone())
    }
}

fn logins() -> Router<Console> {
    Router::new()
        .route("/console", get(applications::list))
        .route("/console/first-application", get(applications::create_wanted).post(applications::create_first))
        .route("/console/login", get(login::begin))
        .route("/console/callback", get(login::finish))
        .route("/console/logout", post(login::log_out))
        .route("/console/drafts/{draft}", get(draft::show))
}

fn in_applications() -> Router<Console> {
    let path = |rest: &str| format!("/console/applications/{{app_id}}{rest}");
    Router::new()
        .route(&path(""), get(devices::list))
        .route(&path("/register"), post(applications::register))
        .merge(devices(path))
        .route(&path("/messages"), get(messages::list))
        .route(&path("/export-messages"), get(messages::export::csv))
        .route(&path("/messages/{id}"), get(message::show))
        .route(&path("/messages/{id}/json"), get(message::json))
        .route(&path("/messages/{id}/test"), get(message::test))
        .route(&path("/messages/{id}/replay"), post(again::send))
        .route(&path("/messages/{id}/run"), post(message::run))
        .route(&path("/live"), get(live::show))
        .route(&path("/live/events"), get(live::events))
        .route(&path("/silence"), get(silence::show).post(silence::submit))
        .route(&path("/functions"), get(functions::show).post(functions::submit))
        .route(&path("/functions/candidate"), post(candidate::submit))
        .route(&path("/functions/correction"), get(correction::show).post(correction::submit))
        .merge(webhooks(path))
        .route(&path("/versions"), get(versions::list))
        .route(&path("/versions/{number}"), get(versions::show))
        .route(&path("/versions/{number}/restore"), post(versions::restore))
}

fn devices(path: impl Fn(&str) -> String) -> Router<Console> {
    let device = |rest: &str| path(&format!("/devices/{{dev_id}}{rest}"));
    Router::new()
        // Not below `/devices`, where it could be the id of a device.
        .route(&path("/new-device"), get(new::show).post(new::create))
        .route(&path("/import-devices"), get(import::show).post(import::submit))
        .route(&path("/export-devices"), get(devices::export::csv))
        .route(&path("/change-devices"), get(many::show).post(many::submit))
        .route(&path("/delete-devices"), get(many::show).post(many::delete::submit))
        .route(&path("/deleted-devices/{deletion}"), get(many::deleted::show))
        .route(&path("/move-devices"), get(many::show).post(many::moves::submit))
        .route(&path("/charts"), get(charts::show))
        .route(&path("/charts/csv"), get(charts::csv))
        .route(&device(""), get(device::show))
        .route(&device("/change"), get(change::show).post(change::submit))
        .route(&device("/delete"), get(delete::confirm).post(delete::delete))
        .route(&device("/charts"), get(charts::show))
        .route(&device("/charts/csv"), get(charts::csv))
        .route(&device("/downlinks"), post(downlinks::schedule))
        .route(&device("/downlinks/clear"), post(downlinks::clear))
        .route(&device("/uplinks"), post(uplinks::simulate))
}

fn webhooks(path: impl Fn(&str) -> String) -> Router<Console> {
    let webhook = |rest: &str| path(&format!("/webhooks/{{webhook_id}}{rest}"));
    Router::new()
        .route(&path("/webhooks"), get(webhooks::list).post(webhooks::create))
        .route(&webhook(""), get(webhook::show))
        .route(&webhook("/change"), get(webhooks::change::show).post(webhooks::change::submit))
        .route(&webhook("/delivered"), get(webhooks::delivered::show))
        .route(&webhook("/test"), post(webhook::test))
        .route(&webhook("/dead-letters/resend"), post(webhook::resend))
        .route(&webhook("/dead-letters/delete"), post(webhook::delete_dead_letters))
        .route(&webhook("/delete"), get(webhook::confirm).post(webhook::delete))
}

/// For unknown paths, inside the layers that turn errors into pages.
async fn not_found() -> Failure {
    Error::NotFound("page").into()
}
