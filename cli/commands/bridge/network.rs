//! The networks that bridges lead to.

use chirpstack::ChirpStackSettings;
use things_stack::ThingsStackSettings;

use crate::services::telemetry::Process;

/// The network to decode for, with its settings.
pub(super) enum Network {
    ChirpStack(Box<ChirpStackSettings>),
    ThingsStack(Box<ThingsStackSettings>),
}

impl Network {
    /// Returns the directory of a bridge's imports, below the data directory.
    pub(super) fn directory(&self) -> &'static str {
        match self {
            Self::ChirpStack(_) => "chirpstack",
            Self::ThingsStack(_) => "things-stack",
        }
    }

    /// Returns the kind of process of a bridge to this network.
    pub(super) fn bridge(&self) -> Process {
        match self {
            Self::ChirpStack(_) => Process::ChirpStackBridge,
            Self::ThingsStack(_) => Process::ThingsStackBridge,
        }
    }

    /// Returns the kind of process of a bridge that only compares.
    pub(super) fn shadow(&self) -> Process {
        match self {
            Self::ChirpStack(_) => Process::ChirpStackShadow,
            Self::ThingsStack(_) => Process::ThingsStackShadow,
        }
    }

    /// Returns the URL that its messages come from.
    pub(super) fn source(&self) -> &str {
        match self {
            Self::ChirpStack(settings) if settings.redis.url.is_empty() => &settings.mqtt.url,
            Self::ChirpStack(settings) => &settings.redis.url,
            Self::ThingsStack(settings) => &settings.api.url,
        }
    }

    /// Returns the network's word for the functions that decode.
    pub(super) fn codecs(&self) -> &'static str {
        match self {
            Self::ChirpStack(_) => "codecs",
            Self::ThingsStack(_) => "formatters",
        }
    }

    /// Returns a text on the fate of messages that were not published when the bridge stopped.
    pub(super) fn unpublished_text(&self) -> &'static str {
        match self {
            Self::ChirpStack(_) => "they come again on the next start, if their quality of service is 1",
            Self::ThingsStack(settings) if settings.webhook.listen.is_empty() => {
                "the storage integration has the uplinks, for the next start"
            }
            Self::ThingsStack(_) => "The Things Stack was not told that it had delivered them",
        }
    }

    /// Returns the text that is printed when the bridge is ready.
    pub(super) fn ready_text(&self, prefix: &str) -> String {
        let from = match self {
            Self::ThingsStack(settings) if !settings.webhook.listen.is_empty() => "webhooks",
            _ => self.source(),
        };
        let (what, to, topic) = match self {
            Self::ChirpStack(settings) => {
                let to = if settings.to.url.is_empty() { &settings.mqtt.url } else { &settings.to.url };
                ("events", to, "application/ID/device/EUI/event/up")
            }
            Self::ThingsStack(settings) => ("messages", &settings.to.url, "v3/APPLICATION@TENANT/devices/DEVICE/up"),
        };
        let place = if to.starts_with("redis") {
            format!("added to the stream {prefix}device:stream:event of {to}")
        } else {
            format!("published at {to} as {prefix}{topic}")
        };
        format!("Decoding the {what} of {from}.\nThey are {place}.\nPress Ctrl-C to stop.")
    }
}
