//! The services of one process: started in the order in which they need each other, ended the other way round.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use server::{
    serve::Serving,
    telemetry::{Health, Metrics},
};
use tokio_util::sync::CancellationToken;

use super::{context::Ground, handler_service::Handling, store_socket::Sharing};
use crate::{args::Service, settings::Settings};

/// Services that run in this process.
pub struct Stack {
    settings: Settings,
    health: Health,
    /// Where things are, in the order in which they started.
    places: Vec<(&'static str, String)>,
    /// Ends the account and discovery services, which the handler may need until it has finished.
    stop: CancellationToken,
    serving: Vec<Serving>,
    discovery_http: Option<SocketAddr>,
    handling: Option<Handling>,
    sharing: Option<Sharing>,
}

impl Stack {
    /// Starts one service, or all of them; returns when they are ready.
    ///
    /// `metrics` are those of the process, which there is one of.
    pub async fn start(settings: Settings, only: Option<Service>, metrics: Metrics) -> anyhow::Result<Self> {
        let includes = |service| only.is_none_or(|only| only == service);
        let mut ground = Ground::lay(settings).await?;
        let mut places = vec![("data", ground.settings.data_dir.display().to_string())];
        let (mut serving, mut token) = (Vec::new(), ground.token()?);
        let (mut discovery_http, mut handling) = (None, None);
        if includes(Service::Account) {
            let (account, handler_token) = ground.account().await?;
            ground.settings.client.auth_server = format!("http://{}", address(&account, 0)?);
            places.push(("account", ground.settings.client.auth_server.clone()));
            token = Some(handler_token);
            serving.push(account);
        }
        let authenticator = Arc::new(ground.authenticator(token.clone())?);
        if includes(Service::Discovery) {
            let discovery = ground.discovery(authenticator.clone()).await?;
            ground.settings.client.discovery_address = address(&discovery, 0)?.to_string();
            discovery_http = Some(address(&discovery, 1)?);
            places.push(("discovery", ground.shown(&discovery)?));
            serving.push(discovery);
        }
        if includes(Service::Handler) {
            let handler = Handling::start(&ground, authenticator, token).await?;
            places.push(("handler", ground.shown(handler.serving())?));
            places.push(("MQTT", handler.mqtt_address().to_string()));
            handling = Some(handler);
        }
        let telemetry = ground.telemetry(metrics).await?;
        places.push(("metrics", format!("http://{}/metrics", address(&telemetry, 0)?)));
        serving.push(telemetry);
        let sharing = ground.share();
        let Ground { settings, health, server, .. } = ground;
        Ok(Self { settings, health, places, stop: server.stop, serving, discovery_http, handling, sharing })
    }

    /// What commands need to talk to these services.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where clients connect over MQTT, if the handler runs here.
    pub fn mqtt_address(&self) -> Option<SocketAddr> {
        self.handling.as_ref().map(Handling::mqtt_address)
    }

    /// Where clients connect over MQTT with TLS, if the settings want that.
    pub fn mqtt_tls_address(&self) -> Option<SocketAddr> {
        self.handling.as_ref().and_then(Handling::mqtt_tls_address)
    }

    /// Where the discovery service answers plain HTTP, if it runs here.
    pub fn discovery_http_address(&self) -> Option<SocketAddr> {
        self.discovery_http
    }

    /// Where the handler answers plain HTTP, if it runs here.
    pub fn handler_http_address(&self) -> Option<SocketAddr> {
        self.handling.as_ref().and_then(|handling| handling.serving().addresses().get(1).copied())
    }

    /// Where everything is, for people.
    pub fn places(&self) -> String {
        let lines: Vec<_> = self.places.iter().map(|(name, place)| format!("{name:>10}  {place}")).collect();
        lines.join("\n")
    }

    /// Takes nothing new, finishes what was accepted, and ends.
    pub async fn stop(self) {
        self.health.drain();
        if let Some(handling) = self.handling {
            handling.stop().await;
        }
        self.stop.cancel();
        for serving in self.serving {
            serving.finished().await;
        }
        if let Some(sharing) = self.sharing {
            sharing.stop().await;
        }
    }
}

/// The address of one listener of a service.
pub(super) fn address(serving: &Serving, number: usize) -> anyhow::Result<SocketAddr> {
    serving.addresses().get(number).copied().context("a service does not say where it listens")
}
