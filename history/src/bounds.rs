//! What the settings allow each application.

use std::time::Duration;

use types::AppId;

use crate::Settings;

/// The settings with their defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    settings: Settings,
}

impl Bounds {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.settings.bytes_max > 0
    }

    /// Whether messages of this application are kept.
    pub(crate) fn keeps(&self, app_id: &AppId) -> bool {
        self.is_on() && self.settings.applications.get(app_id).is_none_or(|own| own.bytes_max != Some(0))
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_millis(self.settings.wait_ms_max)
    }

    pub(crate) fn queue_bytes_max(&self) -> usize {
        self.settings.queue_bytes_max
    }

    pub(crate) fn segment_bytes_max(&self) -> u64 {
        // The tail counts, too: most of what may be kept should be in files that can be deleted one by one.
        self.settings.segment_bytes_max.min(self.settings.bytes_max / 8).max(1)
    }

    pub(crate) fn scans_max(&self) -> usize {
        self.settings.scans_max.max(1)
    }
}
