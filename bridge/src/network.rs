//! A network as other programs use it: its messages in, downlinks out.

use std::sync::Arc;

use futures::future::BoxFuture;
use server::telemetry::Health;

use crate::delivery::Delivery;

/// What is done with each message of a network, and then acknowledges it. The messages of a device come one after the
/// other, those of different devices at once. What is not acknowledged comes again, where the network keeps it.
pub type Handle = Arc<dyn Fn(Delivery) -> BoxFuture<'static, ()> + Send + Sync>;

/// A connection to a network, which makes itself again when it is lost.
pub trait Network: Send + Sync {
    /// Sends a downlink on a topic of the network, in its own form. Waits until the network has taken it, however long
    /// it is away; false if the connection ends before.
    fn send<'a>(&'a self, topic: &'a str, downlink: Vec<u8>) -> BoxFuture<'a, bool>;

    /// Waits until it is connected.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// Reports its connections as health checks.
    fn report_to(&self, health: &Health);

    /// Receives no more, and waits for the messages in progress.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}
