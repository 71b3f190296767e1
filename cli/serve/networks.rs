//! Networks whose devices belong to applications of this handler: `[[bridge]]` in the settings.

mod entry;
mod route;
mod shadow;
mod trial;
mod watched;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use anyhow::{Context as _, ensure};
use bridge::{Environment, Error};
use futures::future::{join_all, try_join_all};
use handler::{downlink, network::NetworkEvents};
use runtime::Pool;
use server::{
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server, ServerHandle},
    telemetry::MetricsSource,
};
use things_stack::{WebhookListener, webhook_router};

use self::{entry::StartedNetwork, route::DownlinkRoute};
pub(super) use self::{route::WatchedRoute, shadow::Shadow, trial::Trials, watched::WatchedNetwork};
use super::context::Context;
use crate::settings::NetworkSettings;

/// The running `[[bridge]]` entries of this process.
pub(super) struct Networks {
    /// Networks that bring devices.
    watched: Arc<[WatchedNetwork]>,
    /// Networks that bring no devices.
    shadows: Arc<[Shadow]>,
    /// Tries networks that are not in the settings.
    trials: Arc<Trials>,
    /// Servers that receive the messages of networks that send them as webhooks.
    webhooks: Vec<ServerHandle>,
}

impl Networks {
    /// Checks the settings, and connects in the background.
    pub(super) async fn start(
        context: &Context,
        server: &Server,
        pool: &Arc<Pool>,
        events: &Arc<NetworkEvents>,
    ) -> anyhow::Result<Self> {
        let (mut watched, mut listeners) = (Vec::<WatchedNetwork>::new(), Vec::new());
        let entries = context.settings.bridge.into.iter();
        let (shadowed, taken): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.shadow);
        check_sources(&taken).await?;
        let shadows = try_join_all(shadowed.into_iter().map(|entry| Shadow::start(context, entry, pool))).await?;
        for settings in taken {
            let unusable = || "cannot use a network of `bridge`";
            let name = settings.name().map_err(Error::in_entry).with_context(unusable)?;
            ensure!(
                watched.iter().all(|network| network.name != name),
                "two entries of `bridge` have the name {name}: give one of them another `name`"
            );
            let directory = settings.directory().with_context(unusable)?;
            let environment = Environment {
                pool: pool.clone(),
                clock: context.clock.clone(),
                random: context.random.clone(),
                state_dir: context.settings.data_dir.join("bridge").join(format!("into-{directory}")),
                // The handler records.
                history: None,
            };
            let routes: Vec<_> = settings.applications.iter().map(WatchedRoute::new).collect();
            let ways = routes.iter().zip(&settings.applications);
            let ways = ways.map(|(route, application)| route.to_handler(application, events)).collect();
            let StartedNetwork { network, webhook } = settings.start(ways, &environment).with_context(unusable)?;
            network.report_to(&context.health);
            listeners.extend(webhook);
            let description = settings.description().with_context(unusable)?;
            watched.push(WatchedNetwork { name, description, routes, network });
        }
        let webhooks = serve_webhooks(listeners, server).await?;
        let bridged = watched.iter().flat_map(|network| &network.routes).map(|route| route.app_id.clone()).collect();
        let applications = (events.uplinks.applications.clone(), bridged);
        let trials = Arc::new(Trials::new(context, pool.clone(), applications, server.stop.clone()));
        Ok(Self { watched: watched.into(), shadows: shadows.into(), trials, webhooks })
    }

    /// Returns the addresses at which messages are received as webhooks.
    pub(super) fn webhook_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.webhooks.iter().flat_map(ServerHandle::addresses).copied()
    }

    /// Returns each network, as its operators see it.
    pub(super) fn watched(&self) -> Arc<[WatchedNetwork]> {
        self.watched.clone()
    }

    /// Returns each network whose results are compared.
    pub(super) fn shadows(&self) -> Arc<[Shadow]> {
        self.shadows.clone()
    }

    pub(super) fn trials(&self) -> Arc<Trials> {
        self.trials.clone()
    }

    /// Returns the metrics of each network.
    pub(super) fn metrics(&self) -> MetricsSource {
        let watched = self.watched.clone();
        Arc::new(move || watched::render(&watched))
    }

    /// Returns the networks through which the downlinks of applications leave; an error if an application has two.
    pub(super) fn of_applications(&self) -> anyhow::Result<downlink::Networks> {
        let mut networks = downlink::Networks::new();
        for WatchedNetwork { network, routes, .. } in self.watched.iter() {
            let app_ids: BTreeSet<_> = routes.iter().map(|route| &route.app_id).collect();
            for app_id in app_ids {
                let is_first =
                    networks.insert(app_id.clone(), Arc::new(DownlinkRoute(network.clone(), app_id.clone()))).is_none();
                ensure!(
                    is_first,
                    "`{app_id}` is in two entries of `bridge`: its downlinks could leave through either, so use an \
                     application for each network"
                );
            }
        }
        Ok(networks)
    }

    /// Receives no more events, and finishes those in progress.
    pub(super) async fn stop(self) {
        let watched = join_all(self.watched.iter().map(|watched| watched.network.stop()));
        let webhooks = join_all(self.webhooks.into_iter().map(ServerHandle::finished));
        let shadows = join_all(self.shadows.iter().map(Shadow::stop));
        tokio::join!(watched, webhooks, shadows);
    }
}

/// Receives webhooks until `server` stops. Networks may share an address.
async fn serve_webhooks(listeners: Vec<WebhookListener>, server: &Server) -> anyhow::Result<Vec<ServerHandle>> {
    let mut by_address: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for listener in listeners {
        by_address.entry(listener.listen.clone()).or_default().push(listener);
    }
    let mut serving = Vec::new();
    for (address, listeners) in by_address {
        let unusable = || format!("cannot listen at `things_stack.webhook.listen` {address} of `bridge`");
        let listening = Listeners::new().plain(&address).await.with_context(unusable)?;
        let service = HttpService::new("webhook", webhook_router(&listeners), ErrorFormat::Account);
        serving.push(server.start(service, listening));
    }
    Ok(serving)
}

/// Refuses entries that read the same events, which each would get a part of.
async fn check_sources(entries: &[&NetworkSettings]) -> anyhow::Result<()> {
    for (place, entry) in entries.iter().enumerate() {
        for other in &entries[..place] {
            ensure!(
                !entry.is_same_source(other).await.context("cannot use a network of `bridge`")?,
                "two entries of `bridge` read the same events: name all applications in one of them"
            );
        }
    }
    Ok(())
}
