//! One user with many applications, and their contents.

use std::sync::Arc;

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    requests::{Requests, request},
    server_process::{Application, DEVICE, ServerProcess},
};

/// Number of concurrent requests that prepare an attack.
const TOGETHER: usize = 8;
/// Maximum number of webhooks of an application.
const WEBHOOKS: usize = 8;

/// Creates so many applications of a new user.
pub(crate) async fn applications(server: &ServerProcess, count: usize, functions: &Value) -> Arc<[Application]> {
    let owner = &server.register("hoarder").await;
    let create = |number| {
        let functions = functions.clone();
        async move { server.add_application(owner, &format!("hoarder-{number}"), functions).await }
    };
    stream::iter(0..count).map(create).buffered(TOGETHER).collect::<Vec<_>>().await.into()
}

/// Gives each application as many webhooks as it may have, with addresses made of two numbers: which application, and
/// which webhook.
pub(crate) async fn add_webhooks(
    server: &ServerProcess,
    applications: &Arc<[Application]>,
    url: impl Fn(usize, usize) -> String + Send + Sync + 'static,
) {
    let count = (applications.len() * WEBHOOKS) as u64;
    let applications = Arc::clone(applications);
    let put = move |number: u64| {
        let (which, hook) = (number as usize / WEBHOOKS, number as usize % WEBHOOKS);
        let application = &applications[which];
        let path = format!("/applications/{}/webhooks/hook-{hook}", application.id);
        let body = json!({ "url": url(which, hook), "events": ["up"] });
        request("PUT", &path, &authorization(application), &body.to_string())
    };
    Requests::new(server.handler, TOGETHER, put).run_times(count).await;
}

/// Gives each application devices with numbers as names.
pub(crate) async fn add_devices(server: &ServerProcess, applications: &Arc<[Application]>, each: usize) {
    let count = (applications.len() * each) as u64;
    let applications = Arc::clone(applications);
    let put = move |number: u64| {
        let application = &applications[number as usize / each];
        let dev_id = format!("dev-{}", number as usize % each);
        let body = json!({ "lorawan_device": { "app_id": application.id, "dev_id": dev_id } });
        let path = format!("/applications/{}/devices/{dev_id}", application.id);
        request("PUT", &path, &authorization(application), &body.to_string())
    };
    Requests::new(server.handler, TOGETHER, put).run_times(count).await;
}

/// Sends uplinks of the first device of each application in turn.
pub(crate) fn uplinks(server: &ServerProcess, applications: &[Application], connections: usize) -> Requests {
    let uplinks: Vec<_> = applications.iter().map(|application| application.uplink(DEVICE)).collect();
    let next = move |number: u64| uplinks[number as usize % uplinks.len()].clone();
    Requests::new(server.handler, connections, next)
}

pub(crate) fn authorization(application: &Application) -> String {
    format!("Bearer {}", application.token.expose())
}
