//! Stored results are corrected in parts, each short enough to wait for.

use std::time::Duration;

use api::rest::handler::{DecodeAgain, DecodeReport};
use client::history::DecodeReports;
use tokio::time::{Instant, sleep, timeout};
use types::{Kind, Kinded};

use crate::{Console, Error, Result, services::Access};

/// Time after which a part ends with its next report, in seconds. The handler ends it: it would have begun the next
/// report when we hang up, and what it corrects for that would not be counted.
const PART_SECONDS: u32 = 5;
/// Maximum time of a part at a handler that knows no such time yet.
const PART_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum time until a report, which may wait for receivers that have no room.
const REPORT_TIME_MAX: Duration = Duration::from_secs(45);
/// Maximum time until the part before has ended, also if somebody has left its page.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(8);
/// Interval of the attempts to begin a part meanwhile.
const BEGIN_INTERVAL: Duration = Duration::from_millis(200);

/// Findings about some of the stored uplinks, which were corrected if that was wanted.
#[derive(Debug, Default)]
pub(crate) struct CorrectedPart {
    pub(crate) found: DecodeReport,
    /// The uplink after which the next part begins.
    pub(crate) next: String,
    /// True if there is no next part.
    pub(crate) is_last: bool,
    /// The reason why it ended too early; empty if it did not.
    pub(crate) stopped: String,
}

impl Console {
    /// Decodes stored uplinks again, from `body.after` on, for a few seconds.
    pub(crate) async fn correct_part(&self, access: &Access, body: &DecodeAgain) -> Result<CorrectedPart> {
        let body = DecodeAgain { seconds_max: PART_SECONDS, ..body.clone() };
        let mut reports = self.begin_part(access, &body).await?;
        let until = Instant::now() + PART_TIME_MAX;
        let mut part = CorrectedPart { next: body.after, ..CorrectedPart::default() };
        while part.stopped.is_empty() && !part.found.done && Instant::now() < until {
            match timeout(REPORT_TIME_MAX, reports.next()).await {
                Ok(Ok(Some(report))) if report.error.is_empty() => part.add(report),
                Ok(Ok(Some(report))) => part.stopped = report.error,
                Ok(Ok(None)) => "the connection to the handler was lost".clone_into(&mut part.stopped),
                Ok(Err(error)) => part.stopped = error.to_string(),
                Err(_) => part.stopped = format!("the handler said nothing for {} s", REPORT_TIME_MAX.as_secs()),
            }
        }
        Ok(part)
    }

    async fn begin_part(&self, access: &Access, body: &DecodeAgain) -> Result<DecodeReports> {
        let announcement = self.announcement(access).await?.ok_or(Error::NotServed)?;
        let until = Instant::now() + BEGIN_TIME_MAX;
        loop {
            match DecodeReports::start(&announcement, &access.app_id, &access.credential, body).await {
                Err(error) if error.kind() == Kind::Conflict && Instant::now() < until => sleep(BEGIN_INTERVAL).await,
                begun => return Ok(begun?),
            }
        }
    }
}

impl CorrectedPart {
    fn add(&mut self, report: DecodeReport) {
        if !report.next.is_empty() {
            report.next.clone_into(&mut self.next);
        }
        self.is_last = report.done && !report.is_cut;
        self.found.add(report);
    }
}
