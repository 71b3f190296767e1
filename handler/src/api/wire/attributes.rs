//! Changes of an attribute of many devices on the wire.

use api::{device as message, rest::handler as body};
use server::status::to_status;
use types::DevId;

use crate::{
    Error,
    api::operations::attributes::{AttributeOutcome, CHANGED_MAX},
    registry::device::AttributeChange,
};

/// The devices and the change that a request names.
pub(crate) fn attribute_change(
    dev_ids: &[String],
    key: String,
    value: Option<String>,
) -> Result<(Vec<DevId>, AttributeChange), Error> {
    if dev_ids.len() > CHANGED_MAX {
        return Err(Error::invalid("Devices", format_args!("they must be at most {CHANGED_MAX}")));
    }
    let dev_ids = dev_ids.iter().map(|dev_id| dev_id.parse::<DevId>()).collect::<Result<Vec<_>, _>>()?;
    Ok((dev_ids, AttributeChange { key, value }))
}

pub(crate) fn changed_body(outcomes: Vec<AttributeOutcome>) -> body::ChangedDevices {
    let mut changed = body::ChangedDevices::default();
    for (dev_id, outcome) in outcomes {
        match outcome {
            Ok(true) => changed.changed += 1,
            Ok(false) => changed.unchanged += 1,
            Err(error) => {
                let reason = to_status(&error).message().to_owned();
                changed.refused.push(body::RefusedDevice { dev_id: dev_id.into(), reason });
            }
        }
    }
    changed
}

/// The same as a message.
pub(crate) fn changed_message(outcomes: Vec<AttributeOutcome>) -> message::ChangedDevices {
    let body::ChangedDevices { changed, unchanged, refused } = changed_body(outcomes);
    let refused =
        refused.into_iter().map(|body::RefusedDevice { dev_id, reason }| message::RefusedDevice { dev_id, reason });
    message::ChangedDevices { changed, unchanged, refused: refused.collect() }
}
