//! Devices of an application: those that match a search, in pages, and all of them.

use api::{
    device::{FindDevicesRequest, FoundDevices},
    handler::{Device, device::Device as Network},
};
use client::handler::{HandlerClient, Page};
use types::{AppId, Timestamp};

use crate::{
    Error, Result,
    messages::history::time,
    site::{page::hex, viewer::Sent},
};

/// Number of devices on a page.
const PAGE: u32 = 50;
/// Number of devices per request to the handler.
pub(super) const ASKED: u32 = 500;
/// The same without their keys.
const FOUND: u32 = 1000;
/// Maximum number of devices of an application of which all are looked at.
const LISTED_MAX: u32 = 50_000;
/// Number of devices of an application that the handler searches.
pub(super) const SEARCHED_MAX: usize = 100_000;

/// A search for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// Text in them; empty for all.
    pub(super) text: String,
    pub(super) not_seen_since: Option<Timestamp>,
    /// True if those come first that were not seen for longest.
    pub(super) by_last_seen: bool,
}

impl Search {
    /// The search in the parameters of a page.
    pub(super) fn sent(sent: &Sent, now: Timestamp) -> Result<Self> {
        Ok(Self {
            text: sent.value("search").trim().to_owned(),
            not_seen_since: time("“Not seen since”", sent.value("silent").trim(), now)?,
            by_last_seen: sent.value("order") == "last_seen",
        })
    }

    /// The page that begins after a place; the first one if that is empty.
    pub(super) async fn page(&self, handler: &HandlerClient, app_id: &AppId, after: &str) -> Result<FoundDevices> {
        Ok(handler.find_devices(self.request(app_id, PAGE, after.to_owned())).await?)
    }

    /// The ids of all devices that match, in no order that counts; refused if there are more than `count_max`.
    pub(super) async fn all(&self, handler: &HandlerClient, app_id: &AppId, count_max: usize) -> Result<Vec<String>> {
        // With the other order, the handler would go through all of history for each part.
        let search = Self { by_last_seen: false, ..self.clone() };
        let (mut dev_ids, mut after) = (Vec::new(), String::new());
        loop {
            let found = handler.find_devices(search.request(app_id, FOUND, after)).await?;
            if let Some(refused) = refusal(&found, app_id, count_max) {
                return Err(refused);
            }
            dev_ids.extend(found.devices.into_iter().map(|device| device.dev_id));
            if found.next.is_empty() {
                return Ok(dev_ids);
            }
            after = found.next;
        }
    }

    fn request(&self, app_id: &AppId, limit: u32, after: String) -> FindDevicesRequest {
        FindDevicesRequest {
            app_id: app_id.to_string(),
            search: self.text.clone(),
            not_seen_since: self.not_seen_since.map(Timestamp::as_nanos),
            order: if self.by_last_seen { "last_seen".to_owned() } else { String::new() },
            limit,
            after,
        }
    }
}

/// The reason why not all devices that match are listed.
fn refusal(found: &FoundDevices, app_id: &AppId, count_max: usize) -> Option<Error> {
    let must = if found.is_cut {
        // No text that is searched for reaches the others.
        format!(
            "must be at most {SEARCHED_MAX} in {app_id}: with more, name those to `airlock devices set` or \
             `airlock devices move` at the command line"
        )
    } else if found.total as usize > count_max {
        format!("must be at most {count_max} at once: search for some of them")
    } else {
        return None;
    };
    Some(Error::Invalid { what: "Devices", must })
}

/// All devices with their keys; refused if the application has too many to look at.
pub(super) async fn all(handler: &HandlerClient, app_id: &AppId) -> Result<Vec<Device>> {
    let (mut all, mut offset, mut is_last) = (Vec::new(), 0, false);
    while !is_last {
        if offset >= LISTED_MAX {
            let must = format!("must be at most {LISTED_MAX} in the application: use the command line for this one");
            return Err(Error::Invalid { what: "Devices", must });
        }
        let devices = handler.list_devices(app_id, Page { limit: ASKED, offset }).await?;
        is_last = devices.len() < ASKED as usize;
        offset += ASKED;
        all.extend(devices);
    }
    Ok(all)
}

pub(super) fn dev_eui(device: &Device) -> String {
    let Some(Network::LorawanDevice(lorawan)) = &device.device else { return String::new() };
    // Some devices of networks have none.
    if lorawan.dev_eui.iter().all(|byte| *byte == 0) { String::new() } else { hex(&lorawan.dev_eui) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_helps_against_too_many_that_match_and_not_against_too_many_to_search() {
        let refused = |total, is_cut| {
            let found = FoundDevices { total, is_cut, ..FoundDevices::default() };
            refusal(&found, &"alice-app".parse().unwrap(), 10).map(|error| error.to_string())
        };
        assert_eq!(refused(10, false), None);
        assert!(refused(11, false).is_some_and(|text| text.contains("at most 10 ") && text.contains("search for")));
        let cut = refused(0, true).unwrap();
        assert!(cut.contains("100000 in alice-app") && cut.contains("airlock devices set"), "{cut}");
        assert!(!cut.contains("search for"), "{cut}");
    }
}
