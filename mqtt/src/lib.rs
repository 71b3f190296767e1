#![doc = include_str!("../README.md")]

mod access_requests;
mod authenticator;
mod broker;
mod budget;
mod connect;
mod connect_limits;
mod connection;
mod context;
mod downlinks;
mod durable;
mod ending;
mod error;
mod figures;
mod http;
mod inbound;
mod limits;
mod listener;
mod message;
mod metrics;
mod open_connections;
mod ownership;
mod packet;
mod permissions;
mod router;
mod session;
mod topics;
mod websocket;

pub use access_requests::{AccessRequests, ClientIds};
pub use authenticator::{Authenticator, Refusal};
pub use broker::{Broker, BrokerServices, BrokerSettings};
pub use budget::SessionMemory;
pub use downlinks::{Accepted, DownlinkRefusal, DownlinkSink, Offer, PublishedDownlink};
pub use durable::{Durable, Sharing};
pub use error::Error;
pub use http::access_router;
pub use limits::PACKET_BYTES_MAX;
pub use message::Publication;
#[doc(hidden)]
pub use packet::relay::relay;
pub use router::{NotStored, Published, Router};
