//! Probes of load balancers and monitoring, which are answered at once while requests wait.
//!
//! An orchestrator restarts a process that does not answer them, and they often come from an address of other clients.
//! The results of their checks are reused, so they cost little.

use std::{sync::Arc, time::Duration};

use store::{Buckets, Rate, TakenToken};
use tokio::time::Instant;

const PATHS: [&str; 5] = ["/grpc.health.v1.Health/Check", "/livez", "/healthz", "/readyz", "/metrics"];
/// Rate at which probes of one address are answered at once; further ones take turns like other requests.
const RATE: Rate = Rate { per: Duration::from_millis(50), burst: 100 };

/// Counts the probes of each address.
pub(super) struct Probes {
    answered: Buckets<Arc<str>>,
    /// A clock that is set back does not concern them.
    started: Instant,
}

impl Default for Probes {
    fn default() -> Self {
        Self { answered: Buckets::default(), started: Instant::now() }
    }
}

impl Probes {
    /// Returns true if a request from this address is a probe that need not wait.
    pub(super) fn may_pass(&self, path: &str, address: &Arc<str>) -> bool {
        let now = || u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        PATHS.contains(&path) && matches!(self.answered.take(address, RATE, now()), TakenToken::Taken { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn too_many_probes_of_an_address_wait_like_requests() {
        let (probes, [here, elsewhere]) = (Probes::default(), ["here", "elsewhere"].map(Arc::from));
        let passed = (0..1000).filter(|_| probes.may_pass(PATHS[0], &here)).count();
        assert_eq!(passed, 100);
        assert!(probes.may_pass("/livez", &elsewhere) && !probes.may_pass("/users", &elsewhere));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(probes.may_pass("/readyz", &here));
    }
}
