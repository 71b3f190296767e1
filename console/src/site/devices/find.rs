//! Devices of an application: those that contain a text, in pages, and all of them.

use api::handler::{Device, device::Device as Network};
use client::handler::{HandlerClient, Page};
use types::AppId;

use crate::{
    Error, Result,
    site::{page::hex, viewer::InApplication},
};

/// Number of devices on a page.
const PAGE: usize = 50;
/// Number of devices per request to the handler.
pub(super) const ASKED: u32 = 500;
/// Maximum number of devices that are searched.
const SEARCHED_MAX: u32 = 20_000;
/// Maximum number of devices of an application of which all are looked at.
const LISTED_MAX: u32 = 50_000;

/// The devices of a page, and whether there are more.
pub(super) struct Found {
    pub(super) devices: Vec<Device>,
    pub(super) has_more: bool,
    pub(super) is_cut: bool,
}

/// The devices of page `number` that contain the text.
pub(super) async fn find(
    request: &InApplication,
    handler: &HandlerClient,
    search: &str,
    number: usize,
) -> Result<Found> {
    let (from, to) = ((number - 1).saturating_mul(PAGE), number.saturating_mul(PAGE));
    let search = search.to_lowercase();
    let (mut matching, mut offset, mut is_last) = (Vec::new(), 0, false);
    while !is_last && matching.len() <= to && offset < SEARCHED_MAX {
        let page = Page { limit: ASKED, offset };
        let devices = handler.list_devices(request.app_id(), page).await?;
        is_last = devices.len() < ASKED as usize;
        offset += ASKED;
        matching.extend(devices.into_iter().filter(|device| contains(device, &search)));
    }
    let has_more = matching.len() > to;
    let devices = matching.into_iter().skip(from).take(PAGE).collect();
    Ok(Found { devices, has_more, is_cut: !is_last && !has_more })
}

/// All devices that contain the text; refused if the application has too many to look at.
pub(super) async fn all(handler: &HandlerClient, app_id: &AppId, search: &str) -> Result<Vec<Device>> {
    let search = search.to_lowercase();
    let (mut matching, mut offset, mut is_last) = (Vec::new(), 0, false);
    while !is_last {
        if offset >= LISTED_MAX {
            let must = format!("must be at most {LISTED_MAX} in the application: use the command line for this one");
            return Err(Error::Invalid { what: "Devices", must });
        }
        let devices = handler.list_devices(app_id, Page { limit: ASKED, offset }).await?;
        is_last = devices.len() < ASKED as usize;
        offset += ASKED;
        matching.extend(devices.into_iter().filter(|device| contains(device, &search)));
    }
    Ok(matching)
}

fn contains(device: &Device, search: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(search);
    search.is_empty()
        || has(&device.dev_id)
        || has(&device.description)
        || has(&dev_eui(device))
        || device.attributes.iter().any(|(key, value)| has(key) || has(value))
}

pub(super) fn dev_eui(device: &Device) -> String {
    let Some(Network::LorawanDevice(lorawan)) = &device.device else { return String::new() };
    // Some devices of networks have none.
    if lorawan.dev_eui.iter().all(|byte| *byte == 0) { String::new() } else { hex(&lorawan.dev_eui) }
}
