//! The path of an uplink: receive, look up, decode (which also converts and validates), publish.
//!
//! `batch` takes many uplinks at once, `recorded` works on those of the past, and `runs` counts for operators.

pub(crate) mod batch;
mod frame;
mod functions_result;
mod group;
mod last_heard;
pub(crate) mod message;
pub(crate) mod record;
pub(crate) mod recorded;
mod runs;
pub(crate) mod stored;
mod trials;

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture, join};
pub(crate) use history::usual_seed as seed;
use history::{History, Loss, RecordId};
use runtime::Priority;
use server::usage::Usage;
use types::{ErrorEvent, Kinded};

pub use self::{
    frame::Frame,
    functions_result::{FunctionsResult, Handled, Reader},
    last_heard::LastHeardTimes,
    runs::{ApplicationRuns, LastFailure, RunCounters, RunFailure, RunSums, WorstRuns},
    trials::Trials,
};
pub(crate) use self::{group::Group, last_heard::ChangedDevices};
use self::{
    message::message,
    record::{Correction, outcome, record, version_label, version_that_ran},
};
use crate::{
    Error,
    output::{Event, Message, Output, PublishReceipt},
    payload::{Decoded, Payload, Payloads, Run, Validity},
    registry::{
        application::{ApplicationSummary, Applications},
        device::{Device, Devices},
    },
    status::{cost::Cost, metrics},
};

/// Brings uplinks from devices to their applications.
pub struct Uplinks {
    /// The applications, which are read when their functions have to be loaded.
    pub applications: Applications,
    /// The devices, which are read together with the summaries of their applications.
    pub devices: Devices,
    /// Decodes payloads.
    pub payloads: Arc<Payloads>,
    /// Receives messages and events.
    pub output: Arc<dyn Output>,
    /// Keeps decoded uplinks; none keeps nothing.
    pub history: Option<Arc<History>>,
    /// True if messages carry `functions_version`, the version of the functions that ran.
    pub shows_version: bool,
    /// Counts what candidates make of uplinks.
    pub trials: Trials,
    /// Counts uplinks by application.
    pub runs: Arc<RunCounters>,
    /// Remembers when devices were heard.
    pub last_heard: Arc<LastHeardTimes>,
}

/// An uplink, its device, and the application as this device has it.
struct FoundUplink {
    application: ApplicationSummary,
    device: Device,
    payload: Payload,
}

/// An uplink, and the result of its functions.
struct DecodedUplink {
    application: ApplicationSummary,
    device: Device,
    payload: Payload,
    decoded: Decoded,
}

/// An uplink that was recorded and published, but may not be stored yet.
struct SentUplink {
    application: ApplicationSummary,
    device: Device,
    outcome: history::Outcome,
    /// Which version of the functions made it, for metrics.
    version_label: &'static str,
    failure: Option<RunFailure>,
    is_valid: bool,
    cost: Cost,
    /// None if nobody reads it.
    result: Option<FunctionsResult>,
    receipts: Vec<PublishReceipt>,
    recorded: Option<BoxFuture<'static, Result<RecordId, Loss>>>,
}

impl Uplinks {
    /// Handles a received frame, and returns the cost of its functions. That and the cost of loading them are added to
    /// `usage`.
    ///
    /// A function that fails does not stop its message, which goes out without fields, together with an event. Only a
    /// validator that returns false drops it.
    pub async fn handle(&self, frame: Frame, usage: &Usage) -> Result<Cost, Error> {
        Ok(self.handle_for(frame, usage, Reader::Nobody).await?.cost)
    }

    /// Handles a frame in the same way, and also returns the result of its functions, if `reader` reads it.
    pub async fn handle_for(&self, frame: Frame, usage: &Usage, reader: Reader) -> Result<Handled, Error> {
        self.process(frame, usage, reader).await.inspect_err(|error| metrics::uplink_dropped(error.kind()))
    }

    async fn process(&self, frame: Frame, usage: &Usage, reader: Reader) -> Result<Handled, Error> {
        let found = self.look_up(frame).await?;
        let decoded = self.decode(found, Run { priority: Priority::Live, usage }).await?;
        self.settle(self.send(decoded, reader)).await
    }

    /// The device, and the application as this device has it.
    async fn look_up(&self, frame: Frame) -> Result<FoundUplink, Error> {
        let (application, device) = self.devices.get_with_summary(frame.path()).await?;
        Ok(FoundUplink::new(frame, device, application))
    }

    /// Decodes, converts and validates. The function sources are read only if the functions are not loaded: reading
    /// them can take longer than running them.
    async fn decode(&self, found: FoundUplink, run: Run<'_>) -> Result<DecodedUplink, Error> {
        let FoundUplink { application, device, payload } = found;
        if let Some(decoded) = self.payloads.decode_if_loaded(&application, &payload, run).await? {
            return Ok(DecodedUplink { application, device, payload, decoded });
        }
        // This reads the summary again too, because the application may have changed since.
        let application = self.applications.get_for(device.path()).await?;
        let decoded = self.payloads.decode(&application, &payload, run).await?;
        Ok(DecodedUplink { application: application.into_parts().0, device, payload, decoded })
    }

    /// Records and publishes it. Nothing of this waits, so that uplinks are recorded and published in the order of
    /// these calls.
    fn send(
        &self,
        DecodedUplink { application, device, payload, decoded }: DecodedUplink,
        reader: Reader,
    ) -> SentUplink {
        let record = |history| {
            let (path, result) = (device.path(), (&payload, &decoded));
            record((history, &self.payloads), path, &application, result, Correction::default()).boxed()
        };
        let recorded = self.history.as_deref().map(record);
        let (outcome, failure, cost) = (outcome(&decoded), RunFailure::of(&decoded), decoded.cost);
        let is_valid = decoded.validity != Validity::Invalid;
        let (version, version_label) =
            (version_that_ran(&application, &decoded), version_label(&application, &decoded));
        let result = (reader == Reader::Caller).then(|| FunctionsResult::of(&decoded, &payload));
        let receipts = self.publish(&device, payload, decoded, version);
        SentUplink { application, device, outcome, version_label, failure, is_valid, cost, result, receipts, recorded }
    }

    /// Waits until it is stored wherever it has to be, and counts it.
    async fn settle(&self, sent: SentUplink) -> Result<Handled, Error> {
        self.last_heard.note(&sent.application, &sent.device);
        let SentUplink { outcome, failure, cost, mut result, receipts, recorded, .. } = sent;
        // Both at the same time: a record is written once it is waited for.
        let recorded = async {
            if let Some(recorded) = recorded {
                // What could not be kept was published nevertheless. It is counted.
                _ = recorded.await;
            }
        };
        let (published, ()) = join!(published(receipts), recorded);
        published?;
        metrics::uplink_decoded(outcome.as_str(), sent.version_label);
        if outcome != history::Outcome::NotConverted {
            self.runs.count(&sent.application.app_id, failure, cost);
        }
        self.trials.count(&sent.application, &sent.device.dev_id, failure.is_some(), cost.fuel);
        if !sent.is_valid {
            return Err(validator_returned_false());
        }
        metrics::uplink_published(cost);
        if let Some(result) = &mut result {
            result.add_excerpt(&self.applications, &sent.device).await;
        }
        Ok(Handled { cost, outcome, result })
    }

    /// Publishes the message, and then one event with everything that went wrong. Functions of this version ran.
    fn publish(
        &self,
        device: &Device,
        mut payload: Payload,
        mut decoded: Decoded,
        version: Option<u32>,
    ) -> Vec<PublishReceipt> {
        let received = payload.received;
        let complaints = complaints(&mut payload, &mut decoded);
        let is_valid = decoded.validity != Validity::Invalid;
        let mut receipts = Vec::with_capacity(1);
        if is_valid {
            let mut message = message(device, payload, decoded);
            message.metadata.functions_version = version.filter(|_| self.shows_version).unwrap_or_default();
            receipts.push(self.publish_event(device, Event::Up(Box::new(message))));
        }
        if let Some(event) = ErrorEvent::of(complaints, Some(received)) {
            let event = ErrorEvent { functions_version: version, ..event };
            receipts.push(self.publish_event(device, Event::UpError(event)));
        }
        receipts
    }

    fn publish_event(&self, device: &Device, event: Event) -> PublishReceipt {
        self.output.publish(Message { app_id: device.app_id.clone(), dev_id: device.dev_id.clone(), event })
    }
}

impl FoundUplink {
    fn new(frame: Frame, device: Device, application: ApplicationSummary) -> Self {
        let application = application.for_device(&device.dev_id);
        Self { application, payload: frame.into_payload(&device), device }
    }
}

/// Waits until all of these are stored.
async fn published(receipts: Vec<PublishReceipt>) -> Result<(), Error> {
    for receipt in receipts {
        receipt.wait().await?;
    }
    Ok(())
}

/// Returns the errors and warnings that the application is told about a message.
fn complaints(payload: &mut Payload, decoded: &mut Decoded) -> Vec<String> {
    let mut complaints = Vec::new();
    if let Some(error) = &decoded.error {
        metrics::function_failed();
        complaints.push(format!("Unable to decode payload fields: {error}"));
    }
    complaints.append(&mut payload.warnings);
    complaints.append(&mut decoded.warnings);
    if decoded.validity == Validity::Invalid {
        complaints.push(validator_returned_false().to_string());
    }
    complaints
}

fn validator_returned_false() -> Error {
    Error::invalid("Payload", "payload validator function returned false")
}
