//! The announcement of this handler to the discovery service.

use std::{future::ready, sync::Arc};

use anyhow::Context as _;
use api::discovery::Announcement;
use client::discovery::DiscoveryClient;
use handler::announcement::Announcer;
use server::{auth::ComponentToken, serve::Listeners, tls::Tls};
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

/// Reports this process as not ready until its handler is announced: before that, clients and network brokers do not
/// find it.
pub(super) fn report_announcement(context: &Context, announcer: Option<Arc<Announcer>>) {
    context.health.add("announcement", move || {
        ready(match &announcer {
            Some(announcer) => announcer.check(),
            None => {
                Err("this handler cannot announce itself, because it has no token: set handler.token_file".to_owned())
            }
        })
    });
}

/// Announces this handler to the discovery service; `None` without a token to do so.
pub(super) fn announcer(
    context: &Context,
    token: Arc<ComponentToken>,
    discovery: DiscoveryClient,
    announcement: Announcement,
) -> Option<Announcer> {
    if token.current().is_none() {
        tracing::warn!(
            "this handler does not announce itself: set handler.token_file to the handler.token in the account service's data directory"
        );
        return None;
    }
    Some(Announcer::new(discovery, context.settings.handler.id.clone(), token, announcement))
}
