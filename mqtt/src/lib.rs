#![doc = include_str!("../README.md")]

mod access;
mod broker;
mod connection;
mod error;
mod http;
mod metrics;
mod packet;
mod router;
mod session;

pub use access::authenticator::{Authenticator, Refusal};
pub use broker::{Broker, BrokerServices, BrokerSettings};
pub use connection::downlinks::{Accepted, DownlinkRefusal, DownlinkSink, Offer, PublishedDownlink};
pub use error::Error;
pub use http::access_router;
pub use http::requests::{AccessRequests, ClientIds};
pub use packet::limits::PACKET_BYTES_MAX;
#[doc(hidden)]
pub use packet::relay::relay;
pub use router::{NotStored, Published, Recipients, Router, SpareRoom};
pub use session::budget::SessionMemory;
pub use session::durable::{Durable, Sharing};
pub use session::message::Publication;
