//! The metrics of this process, for Prometheus.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Histogram buckets for durations, in seconds: from a cached lookup to a request that times out.
const SECONDS: [f64; 12] = [0.000_01, 0.000_05, 0.000_2, 0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];
/// How often samples are merged into buckets, so that they do not accumulate while nobody scrapes.
const UPKEEP_PAUSE: Duration = Duration::from_secs(5);

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Installs the recorder for all crates. Can be called once per process, in a tokio runtime.
    pub fn install(stop: CancellationToken) -> Result<Self, Error> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| Error::Telemetry { what: "metrics" })?;
        let metrics = Self { handle };
        tokio::spawn(stop.run_until_cancelled_owned(metrics.clone().upkeep()));
        Ok(metrics)
    }

    /// All metrics in the format of Prometheus.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP_PAUSE).await;
            self.handle.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusRecorder, Error> {
    let times = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(times, &SECONDS);
    Ok(builder.map_err(|_| Error::Telemetry { what: "metrics" })?.build_recorder())
}
