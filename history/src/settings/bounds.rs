//! Limits that the settings set for each application.

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

    /// Returns true if any messages are kept.
    pub(crate) fn is_on(&self) -> bool {
        self.settings.bytes_max > 0
    }

    /// Returns true if messages of this application are kept.
    pub(crate) fn keeps(&self, app_id: &AppId) -> bool {
        self.is_on() && self.settings.applications.get(app_id).is_none_or(|own| own.bytes_max != Some(0))
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.settings.bytes_max
    }

    pub(crate) fn application_bytes_max(&self, app_id: &AppId) -> u64 {
        let own = self.settings.applications.get(app_id).and_then(|own| own.bytes_max);
        own.or(self.settings.application_bytes_max).unwrap_or(self.settings.bytes_max / 4)
    }

    pub(crate) fn days_max(&self, app_id: &AppId) -> u32 {
        let own = self.settings.applications.get(app_id).and_then(|own| own.days_max);
        own.unwrap_or(self.settings.days_max)
    }

    /// Returns the longest time that messages of any application are kept, in days.
    pub(crate) fn days_max_of_all(&self) -> u32 {
        let own = self.settings.applications.values().filter_map(|own| own.days_max);
        own.chain([self.settings.days_max]).max().unwrap_or_default()
    }

    /// Returns the time that records stay in the tail, in milliseconds.
    pub(crate) fn seal_after_ms(&self) -> u64 {
        u64::from(self.settings.seal_after_minutes) * 60_000
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_millis(self.settings.wait_ms_max)
    }

    pub(crate) fn queue_bytes_max(&self) -> usize {
        self.settings.queue_bytes_max
    }

    pub(crate) fn segment_bytes_max(&self) -> u64 {
        self.settings.segment_bytes_max.min(self.file_bytes_max()).max(1)
    }

    /// Returns the maximum size of a file in bytes: files are deleted whole, so each has to be a small part of the
    /// limit of any application.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        let own = self.settings.applications.values().filter_map(|own| own.bytes_max);
        let all = own.chain(self.settings.application_bytes_max).chain([self.settings.bytes_max]);
        all.filter(|bytes| *bytes > 0).min().unwrap_or_default() / 8
    }

    pub(crate) fn scans_max(&self) -> usize {
        self.settings.scans_max.max(1)
    }
}
