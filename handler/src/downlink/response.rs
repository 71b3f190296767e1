//! Downlinks in response to an uplink, for networks that leave the queue to the handler.

use types::{DevicePath, Downlink, DownlinkConfig, DownlinkEvent, DownlinkOutcome, DownlinkSentEvent};

use super::{
    device_queue::{QueuedDownlink, ReportSource},
    outgoing::{Outgoing, sent},
    queue::{NextDownlink, Reported},
};
use crate::{Error, output::Event};

/// The id under which such a downlink is noted. A device has at most one until its next uplink.
const RESPONSE_ID: &str = "response";

/// The downlink with which an uplink is answered.
pub(crate) struct Response {
    queued: QueuedDownlink,
    /// True if it was sent before.
    is_repeated: bool,
    /// True if more downlinks wait for the device.
    pub(crate) has_more: bool,
}

/// A response as it was sent.
pub(crate) struct SentFrame {
    /// The whole frame, encrypted.
    pub(crate) payload: Vec<u8>,
    pub(crate) gateway_id: String,
    pub(crate) config: DownlinkConfig,
}

impl Response {
    /// Returns the downlink to send.
    pub(crate) fn downlink(&self) -> &Downlink {
        &self.queued.downlink
    }
}

impl Outgoing {
    /// Ends the response to the uplink before this one. One that the device had to acknowledge, but did not, is sent
    /// again.
    pub(crate) async fn end_response(&self, path: DevicePath<'_>, is_acknowledged: bool) -> Result<(), Error> {
        let Some(queued) = self.noted_response(path).await? else { return Ok(()) };
        let outcome = match (queued.downlink.confirmed, is_acknowledged) {
            (false, _) => return self.queues.ended(path, RESPONSE_ID).await,
            (true, true) => DownlinkOutcome::Acknowledged,
            (true, false) => DownlinkOutcome::NotAcknowledged,
        };
        self.report(path, RESPONSE_ID, outcome).await
    }

    /// The response to a device that repeats an uplink; none if there was none.
    pub(crate) async fn repeated_response(&self, path: DevicePath<'_>) -> Result<Option<Response>, Error> {
        let Some(queued) = self.noted_response(path).await? else { return Ok(None) };
        let has_more = !self.queues.list(path).await?.is_empty();
        Ok(Some(Response { queued, is_repeated: true, has_more }))
    }

    /// Returns true if a downlink waits for a device. Fails if the queue cannot be read.
    pub(crate) async fn is_waiting(&self, path: DevicePath<'_>) -> Result<bool, Error> {
        Ok(!self.queues.list(path).await?.is_empty())
    }

    /// The first downlink that waits for a device. It stays claimed until [`Self::response_sent`] or
    /// [`Self::give_up_response`].
    pub(crate) async fn next_response(&self, path: DevicePath<'_>) -> Result<Option<Response>, Error> {
        let Some(NextDownlink { downlink, .. }) = self.queues.claim(path).await? else { return Ok(None) };
        let has_more = self.queues.list(path).await?.len() > 1;
        Ok(Some(Response { queued: downlink, is_repeated: false, has_more }))
    }

    /// Notes that a response was sent, and tells the application. One without a payload only answers the device.
    pub(crate) async fn response_sent(
        &self,
        path: DevicePath<'_>,
        response: Option<Response>,
        SentFrame { payload, gateway_id, config }: SentFrame,
    ) -> Result<(), Error> {
        if let Some(response) = response.as_ref().filter(|response| !response.is_repeated) {
            self.queues.taken(path, &response.queued, (RESPONSE_ID, ReportSource::Answer)).await?;
            self.queues.release(path).await?;
        }
        let downlink_id = response.as_ref().map(|response| response.queued.event_id()).unwrap_or_default();
        let message = sent(path, response.map(|response| response.queued.downlink).unwrap_or_default());
        let (payload, time) = (Some(payload), Some(self.clock.now()));
        let event = DownlinkSentEvent { payload, message, gateway_id, config, time, downlink_id };
        self.publish(path, Event::DownlinkSent(Box::new(event))).wait().await
    }

    /// Leaves a response in the queue, because it cannot be sent now.
    pub(crate) async fn give_up_response(
        &self,
        path: DevicePath<'_>,
        response: Option<&Response>,
    ) -> Result<(), Error> {
        match response {
            Some(response) if !response.is_repeated => self.queues.release(path).await,
            _ => Ok(()),
        }
    }

    /// Tells the application why what waits for a device cannot be sent now. It stays in the queue.
    pub(crate) async fn response_failed(&self, path: DevicePath<'_>, reason: String) -> Result<(), Error> {
        let time = Some(self.clock.now());
        let event = DownlinkEvent { error: Some(reason), time, ..DownlinkEvent::default() };
        self.publish(path, Event::DownlinkError(event)).wait().await
    }

    async fn noted_response(&self, path: DevicePath<'_>) -> Result<Option<QueuedDownlink>, Error> {
        Ok(match self.queues.reported(path, RESPONSE_ID).await? {
            Reported::Found(queued) => Some(queued),
            Reported::Leaving(_) | Reported::NotYet | Reported::Unknown => None,
        })
    }
}
