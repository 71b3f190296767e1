//! The way of one uplink, from a frame to a message on the bus.

use std::sync::Arc;

use runtime::Urgency;
use types::{ErrorEvent, Kinded, Uplink};

use crate::{
    Error,
    device::{Device, Devices},
    frame::{Frame, Payload},
    metrics,
    output::{Message, Output, Topic},
    payload::{Cost, Decoded, Payloads, Verdict},
};

/// Brings uplinks from devices to their applications.
pub struct Uplinks {
    /// Where devices and their applications are looked up.
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
        let (application, device) = self.devices.get_with_application(&frame.app_id, &frame.dev_id).await?;
        let payload = frame.open(&device);
        let decoded = self.payloads.decode(&application, &payload, Urgency::Live).await?;
        let cost = decoded.cost;
        let message = self.report(&device, payload, decoded)?;
        self.publish(&device, Topic::Up, &message)?;
        metrics::uplink_published(cost);
        Ok(cost)
    }

    /// Tells the application what went wrong or is odd, and writes the message that is left.
    fn report(&self, device: &Device, payload: Payload, decoded: Decoded) -> Result<Uplink, Error> {
        if let Some(problem) = &decoded.problem {
            metrics::function_failed();
            self.event(device, format!("Unable to decode payload fields: {problem}"))?;
        }
        for warning in &decoded.warnings {
            self.event(device, warning.clone())?;
        }
        if decoded.verdict == Verdict::Invalid {
            let error = Error::invalid("Payload", "payload validator function returned false");
            self.event(device, error.to_string())?;
            return Err(error);
        }
        Ok(message(device, payload, decoded))
    }

    fn event(&self, device: &Device, error: String) -> Result<(), Error> {
        self.publish(device, Topic::UpErrors, &ErrorEvent { error })
    }

    fn publish(&self, device: &Device, topic: Topic, body: &impl serde::Serialize) -> Result<(), Error> {
        self.output.publish(Message {
            app_id: device.app_id.clone(),
            dev_id: device.dev_id.clone(),
            topic,
            body: serde_json::to_vec(body)?.into(),
        });
        Ok(())
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
