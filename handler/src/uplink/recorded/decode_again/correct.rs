//! Corrects uplinks: keeps their new results as a new revision, and publishes them.

use std::{sync::Arc, time::Duration};

use api::rest::handler::DecodeReport;
use futures::future::join_all;
use history::{History, Loss, Outcome, RecordId};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use types::DevicePath;

use super::{
    compare::Verdict,
    rerun::{After, Decoding},
    summary,
};
use crate::{
    Error,
    output::{Event, Message, Receivers, rooms::Rooms},
    payload::Decoded,
    registry::device::Device,
    uplink::{
        Uplinks,
        message::message,
        record::{Correction, outcome, record, version_that_ran},
        recorded::one_at_a_time::Running,
        stored::whole_payload,
    },
};

/// Time for which corrections are begun before a report, and before those that were begun are waited for.
const CORRECT_TIME_MAX: Duration = Duration::from_secs(5);
const KEEP_TIME_MAX: Duration = Duration::from_secs(1);
/// Size of the corrections that wait for the disk together, in bytes, from which no more are begun.
const WRITTEN_BYTES_MAX: usize = 4 << 20;

/// Corrects uplinks.
pub(super) struct Corrector {
    uplinks: Arc<Uplinks>,
    history: Arc<History>,
    running: Running,
    /// None to publish none.
    published_per_s: Option<u32>,
    rooms: Rooms,
    /// When the next one may be published.
    next_publish: Instant,
    /// Cancelled when nobody waits for the corrections any more.
    stop: CancellationToken,
}

/// What became of uplinks.
pub(super) struct Corrected {
    pub(super) corrector: Corrector,
    pub(super) decodings: Vec<Decoding>,
    /// How many of them were looked at.
    pub(super) done: usize,
    pub(super) report: DecodeReport,
    /// Why it ended, if that was too early.
    pub(super) result: Result<(), Error>,
}

impl Corrector {
    pub(super) fn new(
        (uplinks, history): (Arc<Uplinks>, Arc<History>),
        running: Running,
        published_per_s: Option<u32>,
    ) -> Self {
        let rooms = Rooms::new(uplinks.output.clone(), Receivers::All);
        let (next_publish, stop) = (Instant::now(), CancellationToken::new());
        Self { uplinks, history, running, published_per_s, rooms, next_publish, stop }
    }

    /// Corrects uplinks that differ from what they were, for a few seconds at most. What is published may be published
    /// again if it could not be kept afterwards.
    ///
    /// A task does it: if the caller hangs up, it begins no more, but keeps what it has published before others may
    /// correct the same, who would publish it again.
    pub(super) async fn run(mut self, decodings: Vec<Decoding>) -> Result<Corrected, Error> {
        let stop = self.stop.clone().drop_guard();
        let task = tokio::spawn(async move {
            let mut report = DecodeReport::default();
            let (done, result) = self.correct(&decodings, &mut report).await;
            Corrected { corrector: self, decodings, done, report, result }
        });
        let corrected = task.await.map_err(|error| history::Error::Task(error.into()))?;
        stop.disarm();
        Ok(corrected)
    }

    /// Returns how many of all were looked at, and why it ended if that was too early.
    async fn correct(&mut self, decodings: &[Decoding], report: &mut DecodeReport) -> (usize, Result<(), Error>) {
        let ends = Instant::now() + CORRECT_TIME_MAX;
        let mut done = 0;
        while done < decodings.len() && (done == 0 || Instant::now() < ends) && !self.stop.is_cancelled() {
            let (kept, count, published) = self.begin(decodings.get(done..).unwrap_or_default(), report).await;
            if let Err(error) = wait(kept, report).await {
                return (done, Err(error));
            }
            // Those before the one that could not be published.
            done += count;
            if let Err(error) = published {
                return (done, Err(error));
            }
        }
        (done, Ok(()))
    }

    /// Begins to correct some of them. Returns the corrections on their way to the disk, how many of all were looked
    /// at, and whether they were published.
    async fn begin(
        &mut self,
        decodings: &[Decoding],
        report: &mut DecodeReport,
    ) -> (Vec<impl Future<Output = Result<RecordId, Loss>> + use<>>, usize, Result<(), Error>) {
        let ends = Instant::now() + KEEP_TIME_MAX;
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for (looked_at, decoding) in decodings.iter().enumerate() {
            // Live uplinks wait in the same queue.
            if bytes >= WRITTEN_BYTES_MAX || (looked_at > 0 && Instant::now() >= ends) {
                return (kept, looked_at, Ok(()));
            }
            let Some(after) = correctable(decoding) else { continue };
            match self.publish(decoding, after, report).await {
                Ok(true) => {}
                Ok(false) => return (kept, looked_at, Ok(())),
                Err(error) => return (kept, looked_at, Err(error)),
            }
            self.running.note_recording();
            kept.push(self.write(decoding, after));
            bytes += written_bytes(decoding, after);
        }
        (kept, decodings.len(), Ok(()))
    }

    fn write(&self, decoding: &Decoding, after: &After) -> impl Future<Output = Result<RecordId, Loss>> + use<> {
        let Decoding { original, .. } = decoding;
        let payload = whole_payload(original);
        let path = DevicePath { app_id: &original.app_id, dev_id: &original.dev_id };
        let result = (&payload, &after.decoded);
        record((&self.history, &self.uplinks.payloads), path, after.application.summary(), result, correction(decoding))
    }

    /// Publishes an uplink if that is wanted, where there is room for more than live messages. Returns false if nobody
    /// waits for it any more.
    async fn publish(&mut self, decoding: &Decoding, after: &After, report: &mut DecodeReport) -> Result<bool, Error> {
        self.running.check()?;
        let Some(per_s) = self.published_per_s else { return Ok(!self.stop.is_cancelled()) };
        let Decoding { original, .. } = decoding;
        let path = DevicePath { app_id: &original.app_id, dev_id: &original.dev_id };
        let Some(device) = self.uplinks.devices.find(path).await? else {
            report.not_published += 1;
            return Ok(true);
        };
        let message = [self.message(&device, decoding, after)];
        let stop = self.stop.clone();
        let Some(room) = stop.run_until_cancelled(self.wait_for_room(&message)).await else { return Ok(false) };
        room?;
        // That may have taken a minute.
        self.running.check()?;
        let receipts = self.uplinks.output.publish_again(&message, &Receivers::All).await?;
        receipts.into_iter().for_each(|receipt| summary::add_receipt(report, &original.id, receipt));
        // More could push live messages out of the queues of subscribers.
        self.next_publish = self.next_publish.max(Instant::now()) + Duration::from_secs(1) / per_s.max(1);
        Ok(true)
    }

    fn message(&self, device: &Device, decoding: &Decoding, After { application, decoded, .. }: &After) -> Message {
        let Correction { revision, corrects } = correction(decoding);
        let mut uplink = message(device, whole_payload(&decoding.original), copy(decoded));
        uplink.is_retry = true;
        uplink.revision = revision;
        uplink.corrects = corrects.map(|id| id.to_string()).unwrap_or_default();
        let version = version_that_ran(application.summary(), decoded);
        uplink.metadata.functions_version = version.filter(|_| self.uplinks.shows_version).unwrap_or_default();
        Message { app_id: device.app_id.clone(), dev_id: device.dev_id.clone(), event: Event::Up(Box::new(uplink)) }
    }

    async fn wait_for_room(&mut self, message: &[Message]) -> Result<(), Error> {
        sleep_until(self.next_publish).await;
        self.rooms.wait(message).await.map(drop)
    }
}

/// Waits until corrections are on disk.
async fn wait(
    corrections: Vec<impl Future<Output = Result<RecordId, Loss>>>,
    report: &mut DecodeReport,
) -> Result<(), Error> {
    for kept in join_all(corrections).await {
        match kept {
            Ok(_) => report.written += 1,
            Err(loss) => return Err(Error::CorrectionNotKept(loss.name())),
        }
    }
    Ok(())
}

/// About the size of a correction in bytes.
fn written_bytes(Decoding { original, .. }: &Decoding, After { decoded, .. }: &After) -> usize {
    let json = [&decoded.fields, &decoded.normalized].map(|json| json.as_ref().map_or(0, |json| json.get().len()));
    let logs = decoded.logs.iter().flat_map(|entry| &entry.fields);
    let texts = logs.chain(&decoded.warnings).map(String::len);
    let kept = [original.payload.len(), original.metadata.len(), original.extra.len()];
    json.into_iter().chain(texts).chain(kept).sum()
}

/// Returns the new result of an uplink if it decodes to fields that differ from the stored ones.
fn correctable(decoding: &Decoding) -> Option<&After> {
    let after = decoding.after.as_ref().ok()?;
    let is_other = matches!(after.verdict, Verdict::Changed(_) | Verdict::NewlyDecoded);
    (is_other && outcome(&after.decoded) == Outcome::Decoded).then_some(after)
}

fn correction(decoding: &Decoding) -> Correction {
    let before = decoding.newest.as_ref().map_or(0, |newest| newest.revision);
    Correction { revision: before.saturating_add(1), corrects: Some(decoding.original.id) }
}

/// Copies what a message contains of a result.
fn copy(decoded: &Decoded) -> Decoded {
    Decoded {
        fields: decoded.fields.clone(),
        normalized: decoded.normalized.clone(),
        validity: decoded.validity,
        ..Decoded::default()
    }
}
