//! Compares functions on stored uplinks with those that are live, before they are saved, and with what is stored, once
//! they are.

use std::time::Duration;

use api::{
    handler::Application,
    rest::handler::{DecodeAgain, DecodeReport},
};
use client::history::DecodeReports;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{Console, Error, Result, services::Access};

/// Number of uplinks that are decoded per device, from the newest on.
pub(crate) const PER_DEVICE: u32 = 10;
/// Maximum time that a page waits for the reports.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The same for a page that does without them.
const SHORT_TIME_MAX: Duration = Duration::from_secs(2);
const TOO_MANY: &str = "there are too many for one comparison, so only the newest were";

/// The findings within the time limit.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) found: DecodeReport,
    /// The reason why not all uplinks were compared; empty if they were.
    pub(crate) cut_off: String,
}

impl Console {
    /// Runs the functions and those that are live on the last uplinks of each device, or of one. Nothing changes.
    pub(crate) async fn compare(&self, access: &Access, dev_id: &str, functions: Application) -> Result<Comparison> {
        let body = DecodeAgain {
            functions: Some(functions.into()),
            compare_live: true,
            per_device: PER_DEVICE,
            dev_id: dev_id.to_owned(),
            ..DecodeAgain::default()
        };
        self.decode_again(access, &body, TIME_MAX).await
    }

    /// Counts the uplinks, of the last ones of each device, that a version decodes to something else than what is
    /// stored. It may be less than that if they are not decoded in time.
    pub(crate) async fn count_differing(&self, access: &Access, version: u32) -> Result<u64> {
        let body = DecodeAgain { version, per_device: PER_DEVICE, ..DecodeAgain::default() };
        let decoded = timeout(2 * SHORT_TIME_MAX, self.decode_again(access, &body, SHORT_TIME_MAX)).await;
        let verdicts = decoded.unwrap_or_else(|_| Ok(Comparison::default()))?.found.verdicts;
        Ok(verdicts.changed + verdicts.newly_decoded)
    }

    async fn decode_again(&self, access: &Access, body: &DecodeAgain, time_max: Duration) -> Result<Comparison> {
        let announcement = self.announcement(access).await?.ok_or(Error::NotServed)?;
        let until = Instant::now() + time_max;
        let mut reports = DecodeReports::start(&announcement, &access.app_id, &access.credential, body).await?;
        let mut comparison = Comparison::default();
        while !comparison.found.done && comparison.cut_off.is_empty() {
            match timeout_at(until, reports.next()).await {
                Ok(Ok(Some(report))) if report.error.is_empty() => comparison.found.add(report),
                Ok(Ok(Some(report))) => comparison.cut_off = report.error,
                Ok(Ok(None)) => "the connection to the handler was lost".clone_into(&mut comparison.cut_off),
                Ok(Err(error)) => comparison.cut_off = error.to_string(),
                Err(_) => comparison.cut_off = format!("it took longer than {} s", time_max.as_secs()),
            }
        }
        if comparison.found.is_cut {
            TOO_MANY.clone_into(&mut comparison.cut_off);
        }
        Ok(comparison)
    }
}
