//! The bridge to The Things Stack: a real broker plays its MQTT server, a stand-in its API.

mod downlink_events;
mod downlinks;
mod formatters;
mod harness;
mod losses;
mod shadow;
mod uplinks;
mod webhooks;
