#![doc = include_str!("../README.md")]

mod application;
mod bridge;
mod downlink;
mod feed;
mod formatter;
mod http;
mod message;
mod network;
mod settings;
mod shadow;
mod uplink;

pub use self::{
    bridge::ThingsStackBridge,
    formatter::api::application::check_application,
    http::{webhook::WebhookListener, webhook_router},
    message::other::NETWORK_KINDS,
    network::ThingsStackNetwork,
    settings::{ApiSettings, ThingsStackApplication, ThingsStackSettings, WebhookSettings},
    shadow::ThingsStackShadow,
};
