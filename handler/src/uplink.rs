//! The way of one uplink, from a frame to a message on the bus.

pub mod frame;

use std::sync::Arc;

use runtime::Urgency;
use types::{ErrorEvent, Kinded, Uplink};

use crate::{
    Error,
    application::{Applications, Outline},
    device::{Device, Devices},
    metrics,
    output::{Event, Message, Output},
    payload::{Cost, Decoded, Payloads, Verdict},
};

pub use self::frame::{Frame, PAYLOAD_BYTES_MAX, Payload};

/// Brings uplinks from devices to their applications.
pub struct Uplinks {
    /// Where applications are looked up whose functions are to be loaded.
    pub applications: Applications,
    /// Where devices are looked up, with the outlines of their applications.
    pub devices: Devices,
    /// What turns payloads into fields.
    pub payloads: Arc<Payloads>,
    /// Where messages and events go.
    pub output: Arc<dyn Output>,
}

impl Uplinks {
    /// Handles one frame, top to bottom; each step takes what the one before gave.
    ///
    /// A function that fails does not hold up its message: it goes out without fields, with an event beside it. Only
    /// a validator's "no" drops it.
    pub async fn handle(&self, frame: Frame) -> Result<Cost, Error> {
        self.bring(frame).await.inspect_err(|error| metrics::uplink_dropped(error.kind()))
    }

    async fn bring(&self, frame: Frame) -> Result<Cost, Error> {
        let (outline, device) = self.devices.get_with_outline(&frame.app_id, &frame.dev_id).await?;
        let payload = frame.open(&device);
        let decoded = self.decode(&outline, &payload).await?;
        let cost = decoded.cost;
        let message = self.report(&device, payload, decoded)?;
        self.publish(&device, Event::Up(Box::new(message)));
        metrics::uplink_published(cost);
        Ok(cost)
    }

    /// Texts are read only when nobody has loaded them: reading them can take longer than running them.
    async fn decode(&self, outline: &Outline, payload: &Payload) -> Result<Decoded, Error> {
        if let Some(decoded) = self.payloads.decode_loaded(outline, payload, Urgency::Live).await? {
            return Ok(decoded);
        }
        // All of the application is read again: somebody may have changed it since.
        let application = self.applications.get(&outline.app_id).await?;
        self.payloads.decode(&application, payload, Urgency::Live).await
    }

    /// Tells the application what went wrong or is odd, and writes the message that is left.
    fn report(&self, device: &Device, payload: Payload, decoded: Decoded) -> Result<Uplink, Error> {
        if let Some(problem) = &decoded.problem {
            metrics::function_failed();
            self.event(device, format!("Unable to decode payload fields: {problem}"));
        }
        for warning in &decoded.warnings {
            self.event(device, warning.clone());
        }
        if decoded.verdict == Verdict::Invalid {
            let error = Error::invalid("Payload", "payload validator function returned false");
            self.event(device, error.to_string());
            return Err(error);
        }
        Ok(message(device, payload, decoded))
    }

    fn event(&self, device: &Device, error: String) {
        self.publish(device, Event::UpError(ErrorEvent { error }));
    }

    fn publish(&self, device: &Device, event: Event) {
        self.output.publish(Message { app_id: device.app_id.clone(), dev_id: device.dev_id.clone(), event });
    }
}

fn message(device: &Device, payload: Payload, decoded: Decoded) -> Uplink {
    let metadata = payload.metadata(device);
    let attributes = match decoded.verdict {
        Verdict::Unconverted => Default::default(),
        Verdict::Valid | Verdict::Invalid => device.attributes.clone(),
    };
    Uplink {
        app_id: device.app_id.clone(),
        dev_id: device.dev_id.clone(),
        hardware_serial: device.lorawan.dev_eui,
        port: payload.port,
        counter: payload.counter,
        confirmed: payload.confirmed,
        is_retry: payload.retry,
        payload_raw: payload.bytes,
        payload_fields: decoded.fields,
        normalized_payload: decoded.normalized,
        metadata,
        attributes,
    }
}
