//! Downlinks on the wire.

use api::{downlink::Downlink as Message, rest::handler::Downlink as Body};
use serde_json::value::RawValue;
use types::{DevicePath, Downlink};

use crate::{
    Error,
    downlink::{Scheduled, parse_port},
};

/// The body of a downlink that was put into the queue of its device.
pub(crate) fn scheduled_body(Scheduled { downlink, warnings, .. }: Scheduled) -> Body {
    Body { warnings, ..queued_body(downlink) }
}

/// The body of a downlink in the queue of a device.
pub(crate) fn queued_body(downlink: Downlink) -> Body {
    Body {
        port: downlink.port.into(),
        confirmed: downlink.confirmed,
        payload_raw: downlink.payload_raw.unwrap_or_default(),
        ..Body::default()
    }
}

/// The downlink in a body.
pub(crate) fn downlink(body: Body) -> Result<Downlink, Error> {
    let port = parse_port(body.port)?;
    if body.payload_fields.as_ref().is_some_and(|fields| !fields.get().starts_with('{') && fields.get() != "null") {
        return Err(Error::invalid("Downlink Payload", "payload_fields must be a JSON object"));
    }
    Ok(Downlink {
        port,
        confirmed: body.confirmed,
        schedule: Some(body.schedule),
        payload_raw: Some(body.payload_raw).filter(|bytes| !bytes.is_empty()),
        payload_fields: body.payload_fields,
    })
}

/// The body that a message stands for.
pub(crate) fn body(message: Message) -> Result<Body, Error> {
    let fields = Some(message.payload_fields).filter(|fields| !fields.is_empty()).map(RawValue::from_string);
    Ok(Body {
        port: message.port,
        confirmed: message.confirmed,
        schedule: message.schedule,
        payload_raw: message.payload_raw,
        payload_fields: fields.transpose().map_err(|error| Error::invalid("Downlink Payload", error))?,
        warnings: Vec::new(),
    })
}

/// The message of a downlink that was put into the queue of its device.
pub(crate) fn scheduled_message(path: DevicePath<'_>, Scheduled { downlink, warnings, .. }: Scheduled) -> Message {
    Message { warnings, ..queued_message(path, downlink) }
}

/// The message of a downlink in the queue of a device.
pub(crate) fn queued_message(path: DevicePath<'_>, downlink: Downlink) -> Message {
    Message {
        app_id: path.app_id.to_string(),
        dev_id: path.dev_id.to_string(),
        port: downlink.port.into(),
        confirmed: downlink.confirmed,
        payload_raw: downlink.payload_raw.unwrap_or_default(),
        ..Message::default()
    }
}
