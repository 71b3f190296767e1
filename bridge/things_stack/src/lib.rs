#![doc = include_str!("../README.md")]

mod api;
mod application;
mod bridge;
mod decoder;
mod downlink;
mod feed;
mod formatter;
mod http;
mod message;
mod network;
mod report;
mod settings;
mod shadow;
mod uplink;
mod webhook;

pub use self::{
    bridge::ThingsStackBridge,
    http::webhook_router,
    network::ThingsStackNetwork,
    settings::{ApiSettings, ThingsStackApplication, ThingsStackSettings, WebhookSettings},
    shadow::ThingsStackShadow,
    webhook::WebhookListener,
};
