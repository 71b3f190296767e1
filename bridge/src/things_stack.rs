//! The bridge to The Things Stack 3.

mod api;
mod application;
mod bridge;
mod downlink;
mod feed;
mod formatter;
mod network;
mod report;
mod settings;
mod shadow;
mod uplink;
mod webhook;

pub(crate) use self::webhook::{Admitted, Refusal, Webhook};
pub use self::{
    bridge::ThingsStackBridge,
    network::ThingsStackNetwork,
    settings::{ApiSettings, ThingsStackApplication, ThingsStackSettings, WebhookSettings},
    shadow::ThingsStackShadow,
    webhook::WebhookListener,
};
