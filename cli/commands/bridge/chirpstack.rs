//! `airlock bridge chirpstack`.

use std::path::PathBuf;

use chirpstack::ChirpStackSettings;
use clap::Args;

use super::{
    network::Network,
    run::{leave, until_stopped},
    shadow::ShadowArgs,
};
use crate::settings::Settings;

#[derive(Debug, Args)]
pub(crate) struct ChirpStack {
    /// Broker on which ChirpStack publishes events, such as mqtt://localhost:1883, or mqtts:// for TLS
    #[arg(long, value_name = "URL")]
    mqtt: Option<String>,
    /// ChirpStack's Redis, such as redis://localhost:6379, or rediss:// for TLS: read its stream of events in place of
    /// MQTT
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Username for that broker
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the password for that broker
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// ChirpStack's API, such as http://localhost:8080
    #[arg(long, value_name = "URL")]
    grpc: Option<String>,
    /// File with an API key of ChirpStack, global or of a tenant
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Broker on which decoded events are published, or redis:// for a stream like ChirpStack's own [default: the
    /// broker of --mqtt, with topics that start with `airlock/`]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Prefix for the topics of decoded events, or for the key of the stream
    #[arg(long, value_name = "TEXT")]
    to_prefix: Option<String>,
    /// End this bridge's part in sharing events: publish what the broker has kept for it, take nothing new, and stop
    #[arg(long, conflicts_with = "shadow")]
    leave: bool,
    #[command(flatten)]
    shadow: ShadowArgs,
}

/// Runs the bridge until a signal arrives.
pub(crate) async fn run(command: ChirpStack, settings: Settings) -> anyhow::Result<()> {
    let reporting = command.shadow.reporting();
    let leaves = command.leave;
    let bridge_settings = command.over(settings.bridge.chirpstack.clone());
    if leaves {
        return leave(bridge_settings, &settings).await;
    }
    until_stopped(Network::ChirpStack(Box::new(bridge_settings)), reporting, settings).await
}

impl ChirpStack {
    /// The settings with these flags, which win.
    fn over(self, mut settings: ChirpStackSettings) -> ChirpStackSettings {
        let ChirpStackSettings { mqtt, redis, grpc, to, to_prefix, .. } = &mut settings;
        mqtt.url = self.mqtt.unwrap_or(std::mem::take(&mut mqtt.url));
        mqtt.username = self.user.or(mqtt.username.take());
        mqtt.password_file = self.password_file.or(mqtt.password_file.take());
        redis.url = self.redis.unwrap_or(std::mem::take(&mut redis.url));
        grpc.url = self.grpc.unwrap_or(std::mem::take(&mut grpc.url));
        grpc.token_file = self.token_file.or(grpc.token_file.take());
        to.url = self.to.unwrap_or(std::mem::take(&mut to.url));
        *to_prefix = self.to_prefix.or(to_prefix.take());
        settings
    }
}
