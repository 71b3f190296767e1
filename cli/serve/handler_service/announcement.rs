//! The announcement of this handler to the discovery service.

use std::{future::ready, sync::Arc};

use anyhow::Context as _;
use api::discovery::Announcement;
use client::discovery::DiscoveryClient;
use handler::announcement::Announcer;
use server::{auth::ComponentToken, serve::Listeners, status::ErrorChain, tls::Tls};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::ServiceName;

use crate::{serve::context::Context, version};

/// Returns the address at which others reach a listener; `number` counts from 0.
pub(super) fn public_address(context: &Context, listeners: &Listeners, number: usize) -> anyhow::Result<String> {
    let port = listeners.addresses().get(number).context("the handler has no listener")?.port();
    Ok(format!("{}:{port}", context.settings.announce_host))
}

/// Returns the announcement of this handler to the discovery service. Fails without a listener or an identity.
pub(super) fn announcement(
    context: &Context,
    listeners: &Listeners,
    mqtt_address: String,
) -> anyhow::Result<Announcement> {
    let settings = &context.settings;
    Ok(Announcement {
        id: settings.handler.id.to_string(),
        service_name: ServiceName::Handler.to_string(),
        service_version: version::announced(),
        description: settings.handler.description.clone(),
        net_address: public_address(context, listeners, 0)?,
        api_address: format!("http://{}", public_address(context, listeners, 1)?),
        mqtt_address,
        certificate: context.tls.as_ref().map(Tls::certificate_pem).unwrap_or_default().to_owned(),
        public_key: context.handler_identity()?.public_key_pem().to_owned(),
        ..Default::default()
    })
}

/// Announces this handler to the discovery service; `None` without a token to do so.
pub(super) fn announcer(
    context: &Context,
    token: Arc<ComponentToken>,
    discovery: DiscoveryClient,
    announcement: Announcement,
) -> Option<Arc<Announcer>> {
    let announcer = match token.current() {
        Some(_) => {
            let id = context.settings.handler.id.clone();
            Some(Arc::new(Announcer::new(discovery, id, token, announcement)))
        }
        None => {
            tracing::warn!(
                "this handler does not announce itself: set handler.token_file to the handler.token in the account service's data directory"
            );
            None
        }
    };
    report_announcement(context, announcer.clone());
    announcer
}

/// Reports this process as not ready until its handler is announced: before that, clients and network brokers do not
/// find it.
fn report_announcement(context: &Context, announcer: Option<Arc<Announcer>>) {
    context.health.add("announcement", move || {
        ready(match &announcer {
            Some(announcer) => announcer.check(),
            None => {
                Err("this handler cannot announce itself, because it has no token: set handler.token_file".to_owned())
            }
        })
    });
}

/// Announces this handler now, and again in the background.
pub(super) async fn keep_announced(
    announcer: Option<Arc<Announcer>>,
    stop: CancellationToken,
) -> Option<JoinHandle<()>> {
    let announcer = announcer?;
    // The handler works without the discovery service, and keeps trying to announce itself.
    if let Err(error) = announcer.announce().await {
        tracing::warn!(error = %ErrorChain(&error), "cannot announce this handler: trying again");
    }
    Some(tokio::spawn(async move { announcer.run(stop).await }))
}
