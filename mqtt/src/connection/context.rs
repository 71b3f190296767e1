//! Services and limits that all connections share.

use std::{sync::Arc, time::Duration};

use server::rate_limit::LocalRateLimiter;
use tokio_util::sync::CancellationToken;
use types::AppId;

use crate::{
    Authenticator, DownlinkSink, Router,
    connection::{connect_limits::ConnectLimits, open_connections::OpenConnections},
};

/// Services and limits that all connections share.
pub(crate) struct Context {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) downlinks: Arc<dyn DownlinkSink>,
    pub(crate) router: Arc<Router>,
    pub(crate) connect_limits: ConnectLimits,
    pub(crate) connections: Arc<OpenConnections>,
    /// Limits how often an application is told of misdirected downlinks.
    pub(crate) misdirected: LocalRateLimiter<AppId>,
    /// Makes assigned client identifiers unpredictable.
    pub(crate) salt: [u8; 16],
    pub(crate) session_expiry_max: Duration,
    pub(crate) publishes_per_second_max: u32,
    pub(crate) stop: CancellationToken,
}
