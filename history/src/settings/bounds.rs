//! Limits that the settings set for each application.

use std::time::Duration;

use types::AppId;

use crate::Settings;

/// Minimum number of files that a limit has room for: files are deleted whole.
const FILES_MIN: u64 = 8;
/// No limit of a single application makes segments smaller than this, in bytes: all applications share them.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Maximum size of the records that wait to be written, in bytes: all of them may get into one segment, whose size is
/// limited, too.
const QUEUE_BYTES_MAX: usize = 256 << 20;

/// Maximum size of a segment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentBytes {
    /// Its size if it is of few applications.
    pub(crate) usual: u64,
    /// Its size if it is of however many: a file of any application may come from all of it.
    pub(crate) most: u64,
}

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
        self.settings.queue_bytes_max.min(QUEUE_BYTES_MAX)
    }

    /// Returns the maximum size of a segment: a small part of every limit.
    pub(crate) fn segment_bytes_max(&self) -> SegmentBytes {
        let Settings { applications, application_bytes_max, bytes_max, segment_bytes_max, .. } = &self.settings;
        let own = applications.values().filter_map(|own| own.bytes_max).filter(|bytes| *bytes > 0);
        let own = own.map(|bytes| (bytes / FILES_MIN).max(SEGMENT_BYTES_MIN));
        let of_all = application_bytes_max.iter().chain([bytes_max]).filter(|bytes| **bytes > 0);
        let of_all = of_all.map(|bytes| bytes / FILES_MIN);
        let most = own.chain(of_all).min().unwrap_or(u64::MAX).max(1);
        SegmentBytes { usual: most.min(*segment_bytes_max).max(1), most }
    }

    /// Returns the maximum size of a file of an application that others are merged into, in bytes.
    pub(crate) fn file_bytes_max(&self, app_id: &AppId) -> u64 {
        self.application_bytes_max(app_id).min(self.settings.bytes_max) / FILES_MIN
    }

    pub(crate) fn scans_max(&self) -> usize {
        self.settings.scans_max.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApplicationSettings;

    fn bounds(own: &[(&str, u64)], settings: Settings) -> Bounds {
        let own = own.iter().map(|(app_id, bytes)| {
            let own = ApplicationSettings { bytes_max: Some(*bytes), ..ApplicationSettings::default() };
            (app_id.parse().unwrap(), own)
        });
        Bounds::new(Settings { applications: own.collect(), ..settings })
    }

    #[test]
    fn a_small_limit_of_one_application_makes_its_own_files_small_and_no_others() {
        let [small, other] = ["small-app", "other-app"].map(|app_id| app_id.parse::<AppId>().unwrap());
        let bounds = bounds(&[("small-app", 100_000), ("empty-app", 0)], Settings::default());
        assert_eq!(bounds.segment_bytes_max(), SegmentBytes { usual: 1 << 20, most: 1 << 20 });
        assert_eq!((bounds.file_bytes_max(&small), bounds.file_bytes_max(&other)), (12_500, 31_250_000));
    }

    #[test]
    fn segments_are_a_small_part_of_every_limit() {
        let large = Settings::default();
        let tiny = Settings { bytes_max: 80_000, ..large.clone() };
        let shared = Settings { application_bytes_max: Some(800_000), ..large.clone() };
        for (own, settings, usual, most) in [
            (&[("my-app", 16_000_000)][..], large.clone(), 2_000_000, 2_000_000),
            (&[("my-app", 0)], large.clone(), 16 << 20, 125_000_000),
            (&[], large, 16 << 20, 125_000_000),
            (&[], tiny, 10_000, 10_000),
            (&[], shared, 100_000, 100_000),
        ] {
            assert_eq!(bounds(own, settings).segment_bytes_max(), SegmentBytes { usual, most }, "{own:?}");
        }
    }
}
