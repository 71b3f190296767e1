//! Services that `airlock serve` and commands start: codecs, sandboxes, metrics, and reports of shadow runs.

pub(crate) mod codec_service;
pub(crate) mod pool;
pub(crate) mod shadow_report;
pub(crate) mod telemetry;
