//! Metrics for Prometheus.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Bucket bounds of durations in seconds: from a cached look-up to a request that times out.
const BUCKETS_S: [f64; 12] = [0.000_01, 0.000_05, 0.000_2, 0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];
/// How often samples are moved into buckets, so that they do not pile up while nobody scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Starts collecting the metrics of all crates; once per process, in a tokio runtime.
    pub fn install(stop: CancellationToken) -> Result<Self, Error> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| Error::Telemetry { what: "metrics" })?;
        let metrics = Self { handle };
        tokio::spawn(stop.run_until_cancelled_owned(metrics.clone().upkeep()));
        Ok(metrics)
    }

    /// All metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.handle.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusRecorder, Error> {
    let times = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(times, &BUCKETS_S);
    Ok(builder.map_err(|_| Error::Telemetry { what: "metrics" })?.build_recorder())
}
