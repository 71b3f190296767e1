//! Metrics for Prometheus.

use std::{sync::Arc, time::Duration};

use metrics::{describe_gauge, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio_util::sync::CancellationToken;

use super::process;
use crate::Error;

/// Bucket bounds of durations in seconds: from a cached look-up to a request that times out.
const BUCKETS_S: [f64; 12] = [0.000_01, 0.000_05, 0.000_2, 0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0];
/// Bucket bounds of fuel: from a decoder of a few lines to the limit of a message.
const BUCKETS_FUEL: [f64; 11] = [1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9];
/// Bucket bounds of everything else: with a summary in their place, an idle server would report quantiles of 0.
const BUCKETS: [f64; 10] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6];
const BUILD_INFO: &str = "airlock_build_info";
/// Interval at which samples are moved into buckets, so that they do not pile up while nobody scrapes.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Writes metrics in the text format of Prometheus when they are collected. Here series may end, whereas the recorder
/// keeps each of them for as long as the process runs.
pub type MetricsSource = Arc<dyn Fn() -> String + Send + Sync>;

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
    sources: Vec<MetricsSource>,
}

impl Metrics {
    /// Starts collecting the metrics of all crates; once per process, in a tokio runtime.
    pub fn install(stop: CancellationToken) -> Result<Self, Error> {
        let recorder = recorder()?;
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|_| Error::Telemetry { what: "metrics" })?;
        let metrics = Self { handle, sources: Vec::new() };
        tokio::spawn(stop.run_until_cancelled_owned(metrics.clone().upkeep()));
        Ok(metrics)
    }

    /// Reports the version and commit that the process is built from; an unknown commit is empty.
    pub fn report_build(&self, version: &'static str, commit: &'static str) {
        describe_gauge!(BUILD_INFO, "Always 1; version and commit of this process are its labels");
        gauge!(BUILD_INFO, "version" => version, "commit" => commit).set(1.0);
    }

    /// These metrics, and those of a source.
    #[must_use]
    pub fn with(mut self, source: MetricsSource) -> Self {
        self.sources.push(source);
        self
    }

    /// All metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        let mut text = self.handle.render();
        text.push_str(&process::render());
        self.sources.iter().for_each(|source| text.push_str(&source()));
        text
    }

    async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.handle.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusRecorder, Error> {
    let suffix = |text: &str| Matcher::Suffix(text.to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS)
        .and_then(|builder| builder.set_buckets_for_metric(suffix("_seconds"), &BUCKETS_S))
        .and_then(|builder| builder.set_buckets_for_metric(suffix("_fuel"), &BUCKETS_FUEL));
    Ok(builder.map_err(|_| Error::Telemetry { what: "metrics" })?.build_recorder())
}
