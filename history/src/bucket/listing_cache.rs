//! Listings of a bucket for queries: it is listed at most every few seconds for each application.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use server::status::ErrorChain;
use tokio::time::Instant;

use super::listing::Listing;
use crate::{Error, Skipped};

/// Time that a listing is used.
const AGE_MAX: Duration = Duration::from_secs(5);
/// Maximum number of applications whose listings are kept.
const LISTS_MAX: usize = 100;

/// Listing of a bucket as queries see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedListing {
    pub(crate) listing: Listing,
    /// Set if the bucket cannot be listed now; then the listing is that of the last look.
    pub(crate) skipped: Option<Skipped>,
}

/// The last look of each application.
#[derive(Debug, Default)]
pub(super) struct ListingCache(Mutex<HashMap<String, (Instant, CachedListing)>>);

impl ListingCache {
    /// The last look at an application, or a new one by `list`. If that fails, what was there before, with the reason.
    pub(super) fn look(
        &self,
        app_id: &str,
        url: &str,
        list: impl FnOnce() -> Result<Listing, Error>,
    ) -> Result<CachedListing, Error> {
        let last = self.0.lock().get(app_id).cloned();
        if let Some((_, look)) = last.as_ref().filter(|(when, _)| when.elapsed() < AGE_MAX) {
            return Ok(look.clone());
        }
        let look = match list() {
            Ok(listing) => CachedListing { listing, skipped: None },
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(error) => {
                let skipped = Skipped::unread(url.into(), ErrorChain(&error).to_string());
                CachedListing { skipped: Some(skipped), ..last.map(|(_, look)| look).unwrap_or_default() }
            }
        };
        self.keep(app_id, &look);
        Ok(look)
    }

    /// Has the next query of an application list the bucket again.
    pub(super) fn forget(&self, app_id: &str) {
        self.0.lock().remove(app_id);
    }

    fn keep(&self, app_id: &str, look: &CachedListing) {
        let mut listing_cache = self.0.lock();
        if listing_cache.len() >= LISTS_MAX {
            listing_cache.clear();
        }
        listing_cache.insert(app_id.to_owned(), (Instant::now(), look.clone()));
    }
}
