//! Calls about the devices of an application, one after the other.
//!
//! A network broker of v2 takes five such calls per second from each user. Of calls made at once, the same ones could
//! be refused each time they are repeated.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use types::AppId;

use crate::Error;

/// How many applications may change devices at the same time.
const LANES: usize = 64;
/// How long a call waits for those before it, which is about as long as clients wait for theirs.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The lanes in which calls wait. Those of an application are always in the same one.
pub struct CallLanes {
    lanes: Vec<Mutex<()>>,
    hasher: RandomState,
}

impl Default for CallLanes {
    fn default() -> Self {
        Self { lanes: (0..LANES).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }
}

impl CallLanes {
    /// Waits until the calls before this one are done; [`Error::NetworkBrokersBusy`] if that takes too long.
    pub(super) async fn enter(&self, app_id: &AppId) -> Result<MutexGuard<'_, ()>, Error> {
        let index = self.hasher.hash_one(app_id) as usize % LANES;
        let lane = self.lanes.get(index).ok_or(Error::NetworkBrokersBusy)?;
        timeout(WAIT_MAX, lane.lock()).await.map_err(|_| Error::NetworkBrokersBusy)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_call_waits_for_those_of_the_same_application() {
        let (lanes, app_id) = (CallLanes::default(), "my-app".parse().unwrap());
        let first = lanes.enter(&app_id).await.unwrap();
        assert!(lanes.enter(&app_id).now_or_never().is_none());
        drop(first);
        assert!(lanes.enter(&app_id).now_or_never().is_some());
    }
}
