//! Logs, metrics and health of the process.

mod exposition;
mod health;
mod logs;
mod metrics;
mod process;

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Kind;

use crate::{error::status, rate_limit::RateLimit};

pub use self::exposition::{Exposition, MetricKind};
pub use self::health::{Health, Report};
pub use self::logs::{LogFormat, start_logs};
pub use self::metrics::{Metrics, MetricsSource};

types::settings! {
    /// Logs, metrics and health.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct TelemetrySettings {
        /// The log level: error, warn, info, debug or trace, in general or per module, such as
        /// `info,airlock_handler=debug`.
        pub level: String = "info,mqtt5=error,rumqttc=error".to_owned(),
        /// The log format: auto (text on a terminal, JSON otherwise), text or json.
        pub format: LogFormat = LogFormat::Auto,
        /// A file for security events, one JSON object per line, in addition to the log; none by default.
        ///
        /// Only its owner may read it. While it cannot be written, changes of users, rights, keys, clients, entities
        /// and announcements are refused.
        pub audit_file: Option<PathBuf>,
        /// Size of the file of security events, in bytes, at which it is renamed to `<name>.1` and a new one begins.
        pub audit_file_bytes_max: u64 = 16 * 1024 * 1024,
        /// Number of files of security events that are kept, the current one included; the oldest is deleted.
        pub audit_files_max: u32 = 10,
        /// Security events of one source, such as an address or a user, that are logged per minute.
        ///
        /// Further ones are counted, and the count is logged as one event. All sources together have twenty times as
        /// many. Changes are always logged.
        pub audit_events_per_minute: u32 = 120,
        /// Changes that must be audited which one user or component may make; further ones get 429. So nobody can push
        /// older changes out of the file.
        pub audit_changes: RateLimit = RateLimit::new(1000, 3600),
        /// The address of metrics and health, over plaintext HTTP and without credentials: keep it private.
        ///
        /// If unset, 127.0.0.1 with a port for each kind of process: 9100 if the handler runs in it, 9101 for the
        /// account service, 9102 for the discovery service, 9103 and 9104 for the bridges of ChirpStack and The Things
        /// Stack, 9105 and 9106 for those with `--shadow`, 9107 for `functions serve`, and 9108 for a console of its
        /// own.
        pub listen: Option<String>,
    }
}

/// The routes `/metrics`, `/livez`, `/healthz` and `/readyz`.
///
/// The first three depend on the process alone; `/livez` and `/healthz` answer 503 when it must be started again.
/// `/readyz` runs every check and answers 503 when one fails.
pub fn router(metrics: Metrics, health: Health) -> Router {
    Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(health)
        .route("/metrics", get(render))
        .with_state(Arc::new(metrics))
}

async fn live(State(health): State<Health>) -> (StatusCode, String) {
    match health.failure() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(reason) => (status::http(Kind::Unavailable), format!("{reason}\n")),
    }
}

async fn ready(State(health): State<Health>) -> Report {
    health.report().await
}

async fn render(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render())
}
