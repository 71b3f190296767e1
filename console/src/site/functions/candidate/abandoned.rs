//! The end of a version that a share of the devices had: somebody abandoned it, or the handler, whose reason is known.

use api::version::{Abandonment, Version};
use client::handler::HandlerClient;

use crate::{
    Result,
    site::{page::Time, viewer::InApplication},
};

/// A version that was tried, and then abandoned.
pub(in crate::site) struct Abandoned {
    pub(in crate::site) version: u32,
    /// None if somebody did it.
    pub(in crate::site) end: Option<End>,
}

/// Time and reason of the handler for abandoning a version.
pub(in crate::site) struct End {
    pub(in crate::site) time: Time,
    pub(in crate::site) live_version: u32,
    /// Without a period.
    pub(in crate::site) reason: String,
}

impl Abandoned {
    /// The newest version, if it was tried and is not live.
    pub(in crate::site) async fn newest(request: &InApplication, handler: &HandlerClient) -> Result<Option<Self>> {
        let versions = handler.list_versions(request.app_id()).await?;
        let newest = versions.into_iter().max_by_key(|version| version.number);
        let newest = newest.filter(|newest| !newest.live && newest.share_percent <= 0.0);
        Ok(newest.map(|newest| Self { version: newest.number, end: End::of(&newest) }))
    }
}

impl End {
    /// None if the handler has not abandoned the version.
    pub(in crate::site) fn of(version: &Version) -> Option<Self> {
        let new = |abandoned: &Abandonment| Self {
            time: Time(abandoned.time),
            live_version: abandoned.live_version,
            reason: abandoned.to_string(),
        };
        version.abandoned.as_ref().map(new)
    }
}
