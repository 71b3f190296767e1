//! Searches of devices, and what they sent last, on the wire.

use ::history::Page;
use api::{device as message, rest::handler as body};
use schemars::JsonSchema;
use serde::Deserialize;
use types::{DevId, Timestamp};

use super::history::{list_body, list_message};
use crate::{
    Error,
    api::operations::find::{NEWEST_DEVICES_MAX, NEWEST_MAX, NewestOf, NewestUplinks},
    registry::device::{Device, DeviceOrder, DevicePlace, DeviceSearch, FOUND_MAX, FoundDevices},
};

/// Default number of devices of a page.
const LIMIT: usize = 50;
/// Maximum length of the text of a search, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Which devices of an application are wanted, as it was sent: everything that is empty or zero does not matter.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct SentSearch {
    /// Text in the id, the DevEUI, the description or an attribute, whatever its case.
    pub(crate) search: String,
    /// Only devices that were not seen at this time or later.
    pub(crate) not_seen_since: Option<Timestamp>,
    /// `id`, or `last_seen` for those first that were not seen for longest; `id` if it is omitted.
    pub(crate) order: String,
    /// Maximum number of devices to list: 1000, or 50 if it is omitted or 0.
    pub(crate) limit: usize,
    /// Where the page begins: `next` of the page before.
    pub(crate) after: String,
}

/// Of which devices the newest uplinks are wanted, as it was sent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct SentNewest {
    /// The ids of at most 50 devices, separated by commas.
    pub(crate) dev_ids: String,
    /// Maximum number of uplinks of each device: 20, also if it is omitted or 0.
    pub(crate) limit: usize,
}

impl SentSearch {
    pub(crate) fn into_search(self) -> Result<DeviceSearch, Error> {
        let Self { search, not_seen_since, order, limit, after } = self;
        let text = search.trim().to_lowercase();
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::invalid("Search", format_args!("it must have at most {TEXT_BYTES_MAX} bytes")));
        }
        let order = match order.as_str() {
            "" | "id" => DeviceOrder::Id,
            "last_seen" => DeviceOrder::LastSeen,
            _ => return Err(Error::invalid("Order", "it must be id or last_seen")),
        };
        let limit = bounded(limit, LIMIT, FOUND_MAX)?;
        let after =
            Some(after).filter(|after| !after.is_empty()).map(|after| after.parse::<DevicePlace>()).transpose()?;
        Ok(DeviceSearch { text, not_seen_since, order, after, limit })
    }
}

impl From<message::FindDevicesRequest> for SentSearch {
    fn from(request: message::FindDevicesRequest) -> Self {
        let message::FindDevicesRequest { search, not_seen_since, order, limit, after, .. } = request;
        let not_seen_since = not_seen_since.map(Timestamp::from_nanos);
        Self { search, not_seen_since, order, limit: limit as usize, after }
    }
}

/// Of which devices the newest uplinks are wanted.
pub(crate) fn newest_of<'a>(dev_ids: impl IntoIterator<Item = &'a str>, limit: usize) -> Result<NewestOf, Error> {
    let dev_ids = dev_ids.into_iter().map(str::parse::<DevId>).collect::<Result<Vec<_>, _>>()?;
    if dev_ids.len() > NEWEST_DEVICES_MAX {
        return Err(Error::invalid("Devices", format_args!("they must be at most {NEWEST_DEVICES_MAX}")));
    }
    Ok(NewestOf { dev_ids, limit: bounded(limit, NEWEST_MAX, NEWEST_MAX)? })
}

fn bounded(limit: usize, default: usize, max: usize) -> Result<usize, Error> {
    match limit {
        0 => Ok(default),
        limit if limit <= max => Ok(limit),
        _ => Err(Error::invalid("Limit", format_args!("it must be at most {max}"))),
    }
}

/// A device that was found. It has no keys, so that none are replaced if it is set.
pub(crate) fn device_body(device: Device) -> body::Device {
    let mut body = body::Device::from(device);
    if let Some(lorawan) = &mut body.lorawan_device {
        (lorawan.app_key, lorawan.nwk_s_key, lorawan.app_s_key) = (None, None, None);
    }
    body
}

/// The devices of a page, which were converted before, as JSON.
pub(crate) fn found_body(devices: Vec<body::Device>, found: &FoundDevices) -> body::FoundDevices {
    body::FoundDevices {
        devices,
        total: count(found.total),
        position: count(found.position),
        next: found.next.as_ref().map(ToString::to_string).unwrap_or_default(),
        is_cut: found.is_cut,
        is_partial: found.is_partial,
    }
}

/// The same as a message.
pub(crate) fn found_message(devices: Vec<body::Device>, found: &FoundDevices) -> message::FoundDevices {
    let body::FoundDevices { devices, total, position, next, is_cut, is_partial } = found_body(devices, found);
    let devices = devices.into_iter().map(Into::into).collect();
    message::FoundDevices { devices, total, position, next, is_cut, is_partial }
}

pub(crate) fn newest_body(newest: NewestUplinks) -> body::NewestUplinks {
    let (uplinks, unknown) = (Page { records: newest.uplinks, ..Page::default() }, ids(&newest.unknown));
    body::NewestUplinks { uplinks: list_body(uplinks).records, unknown }
}

/// The same as a message.
pub(crate) fn newest_message(newest: NewestUplinks) -> message::NewestUplinks {
    let (uplinks, unknown) = (Page { records: newest.uplinks, ..Page::default() }, ids(&newest.unknown));
    message::NewestUplinks { uplinks: list_message(uplinks).records, unknown }
}

fn ids(dev_ids: &[DevId]) -> Vec<String> {
    dev_ids.iter().map(ToString::to_string).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
