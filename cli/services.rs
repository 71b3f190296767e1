//! What `airlock serve` and commands start: the codec service, sandboxes, metrics, and reports of shadow runs.

pub(crate) mod codec_service;
pub(crate) mod pool;
pub(crate) mod shadow_report;
pub(crate) mod telemetry;
