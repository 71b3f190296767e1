//! Decodes uplinks, and the downlinks of reports, with the formatter that applies to their device.

use std::sync::Arc;

use bridge::codec::outcome::{self, CodecError, Input, Run};
use types::Clock;

use crate::{
    application::topic::Topic,
    formatter::{Formatter, decoded::Decoded, directory::Directory},
    message::{downlink::DownlinkEvent, uplink::UplinkMessage},
};

/// Decodes payloads.
pub(crate) struct Decoder {
    pub(crate) directory: Arc<Directory>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Decoder {
    /// The formatter of the device that a message on `topic` is from; none if it has none.
    pub(crate) async fn formatter(
        &self,
        message: &UplinkMessage<'_>,
        topic: Topic<'_>,
    ) -> Result<Option<Arc<Formatter>>, CodecError> {
        let found = self.directory.formatters(topic.application, topic.device, message.version.as_ref()).await?;
        found.map(|found| found.up().cloned()).transpose()
    }

    /// Decodes an uplink. What is known of the run of a script goes into `ran`.
    pub(crate) async fn decode(
        &self,
        message: &UplinkMessage<'_>,
        formatter: Option<&Formatter>,
        ran: &mut Run,
    ) -> Result<Decoded, CodecError> {
        let Some(formatter) = formatter else { return Ok(Decoded::default()) };
        let input = Input {
            port: message.port,
            time_ms: message.received_at.unwrap_or_else(|| self.clock.now()).as_millis(),
            seed: outcome::seed(&message.identity),
            variables: "",
        };
        formatter.decode(&message.payload, &input, ran).await
    }

    /// Decodes the downlink that a message is about; without an object if it is encrypted, or nothing decodes it.
    pub(crate) async fn decode_downlink(
        &self,
        event: &DownlinkEvent<'_>,
        topic: Topic<'_>,
    ) -> Result<outcome::Decoded, CodecError> {
        if self.directory.encrypts_payloads(topic.application, topic.device).await? {
            return Ok(outcome::Decoded::default());
        }
        let found = self.directory.formatters(topic.application, topic.device, None).await?;
        let Some(found) = found else { return Ok(outcome::Decoded::default()) };
        let input = Input { port: event.port, time_ms: self.clock.now().as_millis(), seed: 0, variables: "" };
        found.down_decoder()?.decode_downlink(&event.payload, &input).await
    }
}
