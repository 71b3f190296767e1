//! The bridge to The Things Stack 3.

mod api;
mod application;
mod bridge;
mod brokers;
mod catch_up;
mod cayenne;
mod conversion;
mod decoded;
mod decoder;
mod directory;
mod downlink;
mod downlink_event;
mod failed_downlink;
mod feed;
mod formatter;
mod javascript;
mod measurements;
mod network;
mod position;
mod report;
mod settings;
mod shadow;
mod topic;
mod uplink;
mod uplink_message;
mod webhook;
mod webhook_ids;

pub(crate) use self::webhook::{Admitted, Refusal, Webhook};
pub use self::{
    bridge::ThingsStackBridge,
    network::ThingsStackNetwork,
    settings::{ApiSettings, ThingsStackApplication, ThingsStackSettings, WebhookSettings},
    shadow::ThingsStackShadow,
    webhook::WebhookListener,
};
