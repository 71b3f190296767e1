//! Whoever set a webhook: it sends messages only while they may read them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::sleep;
use types::{AppId, Grant};

/// Interval at which a stopped webhook is checked again.
const STOPPED_PAUSE: Duration = Duration::from_secs(2);

/// Says whether somebody may read the messages of an application.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Returns the standing of a grant now. Called before each round of messages, so it should remember the answer.
    async fn standing(&self, app_id: &AppId, grant: &Grant) -> Standing;
}

/// Standing of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It lasts.
    Holds,
    /// It was withdrawn.
    Withdrawn,
    /// Nobody can say, and the last answer is too old.
    Unknown,
}

/// Every grant lasts. For tests and benches without an account service.
#[doc(hidden)]
pub struct EveryGrant;

/// Lets a webhook send only while the grant of whoever set it lasts.
pub(crate) struct Gate {
    pub(crate) grants: Arc<dyn Grants>,
    pub(crate) app_id: AppId,
    pub(crate) grant: Grant,
}

#[async_trait]
impl Grants for EveryGrant {
    async fn standing(&self, _app_id: &AppId, _grant: &Grant) -> Standing {
        Standing::Holds
    }
}

impl Gate {
    /// Returns when the grant lasts.
    pub(crate) async fn opened(&self) {
        while self.grants.standing(&self.app_id, &self.grant).await != Standing::Holds {
            sleep(STOPPED_PAUSE).await;
        }
    }
}
