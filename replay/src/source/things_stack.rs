//! The storage integration of The Things Stack, page by page.

use client::{
    Trust,
    things_stack::{StoredQuery, ThingsStackClient},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use types::{Secret, Timestamp};
use url::Url;

use crate::{Batch, Error, Filter, UplinkSource, message};

/// Maximum number of uplinks on a page.
const PAGE_UPLINKS: u32 = 200;

/// The uplinks that an application has in the storage integration. They are read on a thread that may wait.
pub struct StoredUplinks {
    client: ThingsStackClient,
    key: Secret,
    application: String,
    runtime: Handle,
    after: Timestamp,
    until: Option<Timestamp>,
    /// Current number of uplinks on a page: fewer where so many would be too long.
    page_uplinks: u32,
    /// The last page's uplinks of the time at which the next page begins.
    seen: Vec<Box<RawValue>>,
    /// The number of the next uplink.
    next: u64,
    is_at_end: bool,
}

#[derive(Deserialize)]
struct Received {
    received_at: Timestamp,
}

/// Returns true if a URL leads to The Things Stack.
pub fn is_things_stack(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

impl StoredUplinks {
    /// Reads from a URL such as `https://eu1.cloud.thethings.network/api/v3/as/applications/my-app`, with an API key.
    pub fn new(url: &str, key: Secret, authority: Option<String>, filter: &Filter) -> Result<Self, Error> {
        let (cluster, application) = parts(url)?;
        let client = ThingsStackClient::new(&cluster, &authority.map_or(Trust::System, Trust::Certificate))?;
        // The API returns what comes after a time.
        let before = |time: Timestamp| Timestamp::from_nanos(time.as_nanos().saturating_sub(1));
        Ok(Self {
            client,
            key,
            application,
            runtime: Handle::current(),
            after: filter.since.map_or(Timestamp::default(), before),
            until: filter.until,
            page_uplinks: PAGE_UPLINKS,
            seen: Vec::new(),
            next: 1,
            is_at_end: false,
        })
    }

    /// The next page. One that is too long is asked for again with half as many uplinks.
    fn fetch(&mut self) -> Result<Vec<Box<RawValue>>, Error> {
        let after = self.after.to_rfc3339();
        loop {
            let query = StoredQuery { after: &after, limit: self.page_uplinks, fields: None };
            match self.runtime.block_on(self.client.stored_uplinks(&self.key, &self.application, query)) {
                Err(client::Error::TooLarge { .. }) if self.page_uplinks > 1 => self.page_uplinks /= 2,
                page => return Ok(page?),
            }
        }
    }

    /// The next page, without what was on the page before.
    fn page(&mut self) -> Result<Vec<Box<RawValue>>, Error> {
        let page = self.fetch()?;
        self.is_at_end = page.len() < self.page_uplinks as usize;
        let Some(last) = page.iter().filter_map(|uplink| received(uplink)).max() else {
            self.is_at_end = true;
            return Ok(page);
        };
        // Those of the last time may go on behind the page. If all are of one time, it has to move on.
        let next = Timestamp::from_nanos(last.as_nanos() - 1);
        self.after = if next > self.after { next } else { last };
        self.is_at_end |= self.until.is_some_and(|until| last >= until);
        let seen: Vec<_> = page.iter().filter(|uplink| received(uplink) == Some(last)).cloned().collect();
        let before = std::mem::replace(&mut self.seen, seen);
        Ok(page.into_iter().filter(|uplink| !before.iter().any(|seen| seen.get() == uplink.get())).collect())
    }
}

impl UplinkSource for StoredUplinks {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        while !self.is_at_end {
            let page = self.page()?;
            if page.is_empty() {
                continue;
            }
            let first = self.next;
            self.next += page.len() as u64;
            let uplinks = page.iter().map(|uplink| message::parse(uplink.get()).map_err(|error| error.to_string()));
            return Ok(Some(Batch::uplinks(first, uplinks.collect())));
        }
        Ok(None)
    }

    fn unit(&self) -> &'static str {
        "uplink"
    }
}

fn received(uplink: &RawValue) -> Option<Timestamp> {
    serde_json::from_str::<Received>(uplink.get()).ok().map(|Received { received_at }| received_at)
}

/// The cluster and the application that a URL names.
fn parts(url: &str) -> Result<(String, String), Error> {
    let wrong = || {
        let example = "https://eu1.cloud.thethings.network/api/v3/as/applications/my-app";
        Error::Invalid(format!("the URL must be like {example}, for the storage integration of The Things Stack"))
    };
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    let mut segments = parsed.path_segments().ok_or_else(wrong)?;
    let application = segments.by_ref().skip_while(|segment| *segment != "applications").nth(1);
    let application = application.filter(|application| !application.is_empty()).ok_or_else(wrong)?;
    Ok((parsed.origin().ascii_serialization(), application.to_owned()))
}
