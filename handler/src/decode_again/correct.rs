//! Corrects uplinks: keeps their new results as a new revision, and publishes them.

use std::{sync::Arc, time::Duration};

use api::rest::handler::DecodeReport;
use futures::future::join_all;
use history::{History, Loss, Outcome, RecordId};
use tokio::time::sleep;

use super::{
    DecodeAgain,
    compare::Verdict,
    rerun::{After, Decoding},
};
use crate::{
    Error,
    output::{Event, Message},
    payload::Decoded,
    uplink::{
        Uplinks,
        message::message,
        record::{Correction, outcome, record},
        stored::whole_payload,
    },
};

/// Corrects uplinks.
pub(super) struct Corrector {
    uplinks: Arc<Uplinks>,
    history: Arc<History>,
    is_written: bool,
    published_per_s: Option<u32>,
}

impl Corrector {
    pub(super) fn new(uplinks: Arc<Uplinks>, history: Arc<History>, again: &DecodeAgain) -> Self {
        Self { uplinks, history, is_written: again.is_written, published_per_s: again.published_per_s }
    }

    /// Corrects those that are decoded, and differ from what they were. What is published may be published again if it
    /// could not be kept afterwards.
    pub(super) async fn correct(&self, decodings: &[Decoding], report: &mut DecodeReport) -> Result<(), Error> {
        let mut kept = Vec::new();
        for (decoding, after) in decodings.iter().filter_map(|decoding| Some((decoding, correctable(decoding)?))) {
            if self.published_per_s.is_some() {
                self.publish(decoding, after, report).await?;
            }
            if self.is_written {
                kept.push(self.write(decoding, after));
            }
        }
        for kept in join_all(kept).await {
            match kept {
                Ok(_) => report.written += 1,
                Err(loss) => return Err(Error::CorrectionNotKept(loss.name())),
            }
        }
        Ok(())
    }

    fn write(&self, decoding: &Decoding, after: &After) -> impl Future<Output = Result<RecordId, Loss>> + use<> {
        let Decoding { original, .. } = decoding;
        let payload = whole_payload(original);
        let ids = (&original.app_id, &original.dev_id);
        let made = (&payload, &after.decoded);
        record((&self.history, &self.uplinks.payloads), ids, after.application.summary(), made, correction(decoding))
    }

    /// Publishes an uplink, and waits until the next one may be.
    async fn publish(&self, decoding: &Decoding, after: &After, report: &mut DecodeReport) -> Result<(), Error> {
        let Decoding { original, .. } = decoding;
        let Some(device) = self.uplinks.devices.find(&original.app_id, &original.dev_id).await? else {
            report.not_published += 1;
            return Ok(());
        };
        let Correction { revision, corrects } = correction(decoding);
        let mut uplink = message(&device, whole_payload(original), copy(&after.decoded));
        uplink.is_retry = true;
        uplink.revision = revision;
        uplink.corrects = corrects.map(|id| id.to_string()).unwrap_or_default();
        let (app_id, dev_id) = (device.app_id, device.dev_id);
        self.uplinks.output.publish(Message { app_id, dev_id, event: Event::Up(Box::new(uplink)) }).wait().await?;
        report.published += 1;
        // More could push live messages out of the queues of subscribers.
        let per_s = self.published_per_s.unwrap_or(1).max(1);
        sleep(Duration::from_secs(1) / per_s).await;
        Ok(())
    }
}

/// Returns the new result of an uplink if it decodes to fields that differ from the stored ones.
fn correctable(decoding: &Decoding) -> Option<&After> {
    let after = decoding.after.as_ref()?;
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
