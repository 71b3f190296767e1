//! The environment of the watch, and its knowledge of the clock.

use std::{sync::Arc, time::Duration};

use history::History;
use server::ledger::Owners;
use store::Store;
use types::{Clock, Timestamp};

use super::clock::WatchedClock;
use crate::{
    OneAtATime,
    output::Output,
    registry::{application::Applications, device::Devices},
    uplink::LastHeardTimes,
};

/// The environment of the watch.
pub struct Environment {
    /// The applications, which say after which time devices count as silent.
    pub applications: Applications,
    /// The devices that may fall silent.
    pub devices: Devices,
    /// The store of both, and of alarms.
    pub store: Arc<dyn Store>,
    /// Remembers when devices were heard.
    pub last_heard: Arc<LastHeardTimes>,
    /// Receives events.
    pub output: Arc<dyn Output>,
    /// Knows when devices were heard before; none if nothing is kept.
    pub history: Option<Arc<History>>,
    /// Knows who takes turns.
    pub owners: Arc<Owners>,
    /// The applications whose silences this process reports now.
    pub turns: OneAtATime,
    /// True if other handlers may use the store.
    pub is_shared: bool,
    /// The time of events.
    pub clock: Arc<dyn Clock>,
    /// Returns the time that has passed since any moment, whatever the clock shows.
    pub monotonic: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// Looks at devices.
pub(super) struct Watcher {
    pub(super) with: Environment,
    pub(super) clock: WatchedClock,
    /// When the clock has jumped, if it did.
    pub(super) jumped: Option<Timestamp>,
}
