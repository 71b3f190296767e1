//! `airlock bridge things-stack`.

use std::path::PathBuf;

use clap::Args;
use things_stack::{ThingsStackApplication, ThingsStackSettings};

use super::{network::Network, run::until_stopped, shadow::ShadowArgs};
use crate::settings::Settings;

#[derive(Debug, Args)]
pub(crate) struct ThingsStack {
    /// The Things Stack, such as https://eu1.cloud.thethings.network
    #[arg(long, value_name = "URL")]
    api: Option<String>,
    /// Application with its tenant, such as app1@ttn; may be repeated
    #[arg(long, value_name = "ID")]
    application: Vec<String>,
    /// File with an API key of the applications
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The Things Stack's MQTT server, such as mqtts://localhost:8883 [default: the host of --api]
    #[arg(long, value_name = "URL")]
    mqtt: Option<String>,
    /// Address at which to receive messages as a webhook, in place of MQTT, such as 127.0.0.1:8090
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["mqtt", "shadow"])]
    webhook_listen: Option<String>,
    /// Broker on which decoded messages are published, and on which downlinks are taken
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Prefix for the topics of decoded messages
    #[arg(long, value_name = "TEXT")]
    to_prefix: Option<String>,
    #[command(flatten)]
    shadow: ShadowArgs,
}

/// Runs the bridge until a signal arrives.
pub(crate) async fn run(command: ThingsStack, settings: Settings) -> anyhow::Result<()> {
    let reporting = command.shadow.reporting();
    let bridge_settings = command.over(settings.bridge.things_stack.clone());
    until_stopped(Network::ThingsStack(Box::new(bridge_settings)), reporting, settings).await
}

impl ThingsStack {
    /// The settings with these flags, which win.
    fn over(self, mut settings: ThingsStackSettings) -> ThingsStackSettings {
        let ThingsStackSettings { api, mqtt, webhook, to, to_prefix, key_file, applications, .. } = &mut settings;
        api.url = self.api.unwrap_or(std::mem::take(&mut api.url));
        mqtt.url = self.mqtt.unwrap_or(std::mem::take(&mut mqtt.url));
        webhook.listen = self.webhook_listen.unwrap_or(std::mem::take(&mut webhook.listen));
        to.url = self.to.unwrap_or(std::mem::take(&mut to.url));
        *to_prefix = self.to_prefix.or(to_prefix.take());
        *key_file = self.key_file.or(key_file.take());
        if !self.application.is_empty() {
            let known = std::mem::take(applications);
            let named = |id: String| {
                let known = known.iter().find(|application| application.id == id).cloned();
                known.unwrap_or(ThingsStackApplication { id, key_file: None })
            };
            *applications = self.application.into_iter().map(named).collect();
        }
        settings
    }
}
