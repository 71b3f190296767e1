//! The downlink in response to an uplink, made from the template of the network server.

use std::{sync::Arc, time::Duration};

use api::broker::{DownlinkMessage, DownlinkOption};
use tokio::{sync::mpsc, time::sleep};
use types::{Clock, DevicePath, Timestamp};

use super::metadata;
use crate::{
    Error,
    downlink::{Outgoing, Response, SentFrame},
    network::lorawan::{DownlinkFrame, FramePayload, SessionKeys},
    registry::device::Device,
    status::metrics,
};

/// Time that an application has to react to an uplink before the device is answered.
const ANSWER_WAIT: Duration = Duration::from_millis(100);
/// The text of v2.
const NO_GATEWAYS: &str = "No gateways available for downlink";
const TOO_LATE: &str = "The network forwarded the uplink too late for a downlink";

/// Response that the network prepared; without a message if no gateway can send one.
pub(super) struct Template {
    pub(super) message: Option<DownlinkMessage>,
    /// Time when the device stops listening for the response, if it is known.
    pub(super) answer_by: Option<Timestamp>,
    /// Channel for the response.
    pub(super) replies: mpsc::Sender<DownlinkMessage>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A template that can be sent.
struct Prepared {
    message: DownlinkMessage,
    option: DownlinkOption,
    frame: DownlinkFrame,
}

impl Template {
    /// The frame counter of this response.
    pub(super) fn f_cnt(&self) -> Option<u32> {
        let prepared = Prepared::parse(self.message.clone()?).ok()??;
        Some(prepared.frame.f_cnt())
    }

    /// Gives the application time to answer. A late uplink is not answered, and those of the device behind it may yet
    /// be.
    ///
    /// If no gateway can send a response, the application is told so when it has answered.
    async fn wait_for_application(&self) {
        if !self.is_late() {
            sleep(ANSWER_WAIT).await;
        }
    }

    fn is_late(&self) -> bool {
        self.answer_by.is_some_and(|answer_by| self.clock.now() > answer_by)
    }

    /// Sends what waits for the device, or else what the network itself has to say; returns whether anything was sent.
    /// An outdated template takes no payload: what waits then goes with a later one.
    pub(super) async fn respond(
        self,
        outgoing: &Outgoing,
        device: &Device,
        (is_retry, is_outdated): (bool, bool),
    ) -> Result<bool, Error> {
        let path = device.path();
        let repeated = match is_retry {
            true => outgoing.repeated_response(path).await?,
            false => None,
        };
        if repeated.is_none() {
            self.wait_for_application().await;
        }
        let is_late = self.is_late();
        if is_late {
            let DevicePath { app_id, dev_id } = path;
            tracing::warn!(%app_id, %dev_id, "did not answer an uplink that came too late: compare the clocks of routers");
            metrics::uplink_late();
        }
        let message = self.message.filter(|_| !is_late);
        let Some(prepared) = message.map(Prepared::parse).transpose()?.flatten() else {
            if repeated.is_some() || outgoing.is_waiting(path).await? {
                let reason = if is_late { TOO_LATE } else { NO_GATEWAYS };
                outgoing.response_failed(path, reason.to_owned()).await?;
            }
            return Ok(false);
        };
        let response = match repeated {
            // The response that the device repeats its uplink for has just left.
            Some(_) if is_outdated => return Ok(false),
            None if is_outdated => None,
            Some(response) => Some(response),
            None => outgoing.next_response(path).await?,
        };
        if response.is_none() && !prepared.frame.is_needed() {
            return Ok(false);
        }
        match prepared.send(device, response.as_ref(), &self.replies) {
            Ok(sent) => outgoing.response_sent(path, response, sent).await.map(|()| true),
            Err(error) => {
                outgoing.give_up_response(path, response.as_ref()).await?;
                if response.is_some() {
                    outgoing.response_failed(path, error.to_string()).await?;
                }
                Err(error)
            }
        }
    }
}

impl Prepared {
    /// Reads a template; none if it names no way to send it.
    fn parse(mut message: DownlinkMessage) -> Result<Option<Self>, Error> {
        let Some(option) = message.downlink_option.clone() else { return Ok(None) };
        let f_cnt = metadata::configuration(&option).map_or(0, |lorawan| lorawan.f_cnt);
        let frame = DownlinkFrame::from_template(&message.payload, f_cnt)?;
        // It repeats the payload, and would be wrong.
        message.message = None;
        Ok(Some(Self { message, option, frame }))
    }

    fn send(
        mut self,
        device: &Device,
        response: Option<&Response>,
        replies: &mpsc::Sender<DownlinkMessage>,
    ) -> Result<SentFrame, Error> {
        let payload = response.map(|response| FramePayload {
            port: response.downlink().port,
            bytes: response.downlink().payload_raw.as_deref().unwrap_or_default(),
            is_confirmed: response.downlink().confirmed,
            has_more: response.has_more,
        });
        let payload = self.frame.seal(payload, &SessionKeys::of(device)?)?;
        let config = metadata::config(&self.option, self.frame.f_cnt(), payload.len());
        self.message.payload.clone_from(&payload);
        replies.try_send(self.message).map_err(|_| Error::NetworkBrokerGone)?;
        Ok(SentFrame { payload, gateway_id: self.option.gateway_id, config })
    }
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;
    use tokio::time::Instant;

    use super::*;

    /// Returns the time that the application has to react to an uplink whose device listens until then.
    async fn waited(answer_by: Option<Timestamp>) -> Duration {
        let (replies, _) = mpsc::channel(1);
        let template = Template { message: None, answer_by, replies, clock: ManualClock::new() };
        let began = Instant::now();
        template.wait_for_application().await;
        began.elapsed()
    }

    // Conformance: An uplink that the network forwards too late gets no downlink
    #[tokio::test(start_paused = true)]
    async fn nothing_waits_for_an_answer_to_a_late_uplink() {
        let now = ManualClock::new().now();
        let before = Timestamp::from_millis(now.as_millis() - 1);
        // Ten late ones, which a router forwards at once, would make the next one late.
        assert_eq!(waited(Some(before)).await, Duration::ZERO);
        for answer_by in [None, Some(now.plus(Duration::from_secs(1)))] {
            assert!(waited(answer_by).await >= ANSWER_WAIT);
        }
    }
}
