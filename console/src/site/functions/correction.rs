//! The command that corrects what is stored, as a part of the page of functions that have just gone live.

use crate::{functions::comparison::PER_DEVICE, site::viewer::InApplication};

/// The notices of pages that are shown when other functions have gone live.
const NOTICES: [&str; 4] = ["saved", "overtaken", "restored", "promoted"];

/// Stored results that the live functions would not give, and the command that corrects them.
pub(super) struct Correction {
    /// The number of such uplinks among the last ones of each device.
    pub(super) uplinks: u64,
    pub(super) per_device: u32,
    pub(super) command: String,
}

impl Correction {
    /// Looks for such results after functions have gone live; none if there are none, or if nobody can say in time.
    pub(super) async fn after(request: &InApplication, notice: &str, live: u32) -> Option<Self> {
        if live == 0 || !NOTICES.contains(&notice) {
            return None;
        }
        let uplinks = request.console.count_differing(&request.access, live).await.ok().filter(|count| *count > 0)?;
        let app_id = request.app_id();
        let command = format!("airlock history decode --app-id {app_id} --version {live} --write --publish");
        Some(Self { uplinks, per_device: PER_DEVICE, command })
    }
}
