//! Decodes an uplink with the codec of its device profile.

use std::sync::Arc;

use bridge::codec::outcome::{CodecError, Decoded, Input, Run, seed};
use types::Clock;

use crate::{
    codec::directory::Directory,
    event::{UplinkEvent, topic::Topic},
};

/// Decodes uplinks with the codecs of their device profiles.
pub(crate) struct Decoder {
    pub(crate) directory: Arc<Directory>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Decoder {
    /// Decodes an uplink that came on `topic`, which access control at the broker has checked, unlike the body.
    /// Fills `ran` with what is known of the run of a script.
    pub(crate) async fn decode(
        &self,
        event: &UplinkEvent<'_>,
        topic: Topic<'_>,
        ran: &mut Run,
    ) -> Result<Decoded, CodecError> {
        let profile = self.directory.profile(&event.device.device_profile_id).await?;
        if !profile.codec.is_script() {
            return profile.codec.decode(&event.data, &Input::default(), ran).await;
        }
        if !event.device.dev_eui.eq_ignore_ascii_case(topic.dev_eui) {
            return Err(CodecError::Foreign);
        }
        let device = self.directory.device(&event.device.dev_eui).await?;
        if *device.application_id != *topic.application_id {
            return Err(CodecError::Foreign);
        }
        let input = Input {
            port: event.port,
            time_ms: event.time.unwrap_or_else(|| self.clock.now()).as_millis(),
            seed: seed(&event.deduplication_id),
            variables: device.variables.get(),
        };
        profile.codec.decode(&event.data, &input, ran).await
    }
}
