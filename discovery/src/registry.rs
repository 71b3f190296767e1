//! Stored records of announcements. There is one tag per service, so that moving something is one commit.
//!
//! | key under `{d:<service>}` | value |
//! |---|---|
//! | `announcement/<id>` | the announcement, as JSON |
//! | `holder/<metadata>` | the id of the component that serves it |
//! | `served/<id>/<metadata>` | empty: the key lists what a component serves |
//! | `guard/dev_addr_prefix` | empty: its version changes whenever a prefix is added |

use std::sync::Arc;

use server::usage::Usage;
use store::{Batch, Commit, Entry, Key, LIST_MAX, Store, Tag};
use types::{ComponentId, DevAddrPrefix, IdError, ServiceName, Timestamp};

use crate::{
    Error,
    announcement::{Announcement, StoredAnnouncement},
    error::Result,
    metadata::Metadata,
};

/// Maximum number of attempts at a change while others change the same records.
const ATTEMPTS_MAX: usize = 5;
/// Maximum number of prefixes of device addresses, all of which are compared with a new one.
const PREFIXES_MAX: usize = 4096;
/// Maximum number of announcements in one response, which is one read of the store.
pub(crate) const PAGE_MAX: usize = LIST_MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    /// Maximum number of items; zero for the default.
    pub(crate) limit: usize,
    /// Number of items to skip.
    pub(crate) offset: usize,
}

/// Stores announcements and what components serve.
pub(crate) struct Registry {
    store: Arc<dyn Store>,
}

impl Registry {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Stores an announcement, replacing an earlier one of the same component.
    pub(crate) async fn announce(&self, announcement: &Announcement, now: Timestamp) -> Result<()> {
        let key = announcement_key(announcement.service, &announcement.id)?;
        self.commit(&announcement.id, || async {
            let earlier = self.entry(&key).await?;
            let created_at = earlier.as_ref().map(record).transpose()?.map_or(now, |earlier| earlier.created_at);
            let record = StoredAnnouncement { announcement: announcement.clone(), created_at, updated_at: now };
            let value = serde_json::to_vec(&record).map_err(Error::record)?;
            Ok(Batch::new().expect_entry(&key, earlier.as_ref()).put(key.clone(), value))
        })
        .await
    }

    pub(crate) async fn announcement(&self, service: ServiceName, id: &ComponentId) -> Result<Announcement> {
        let entry = self.entry(&announcement_key(service, id)?).await?;
        let entry = entry.ok_or_else(|| Error::NotFound { entity: format!("announcement:{service}:{id}") })?;
        Ok(record(&entry)?.announcement)
    }

    /// Returns the announcements of a service, ordered by id.
    pub(crate) async fn announcements(
        &self,
        service: ServiceName,
        page: Page,
        usage: &Usage,
    ) -> Result<Vec<Announcement>> {
        let limit = if page.limit == 0 { PAGE_MAX } else { page.limit.min(PAGE_MAX) };
        let prefix = key(service, "announcement/")?;
        let entries = self.store.page(&prefix, page.offset, limit).await?.entries;
        let read = |entry| Ok(record(&entry)?.announcement);
        usage.map_in_pieces(entries, read).await.into_iter().collect()
    }

    /// Returns what a component serves, at most `limit` entries.
    pub(crate) async fn served(
        &self,
        service: ServiceName,
        id: &ComponentId,
        limit: usize,
        usage: &Usage,
    ) -> Result<Vec<Metadata>> {
        let prefix = key(service, &format!("served/{id}/"))?;
        let entries = self.list(&prefix, limit).await?;
        usage.map_in_pieces(entries, |entry| metadata(&entry, &prefix)).await.into_iter().collect()
    }

    /// Returns the component that serves something.
    pub(crate) async fn holder(&self, metadata: &Metadata) -> Result<ComponentId> {
        let entry = self.entry(&holder_key(metadata)?).await?;
        component(&entry.ok_or_else(|| Error::NotFound { entity: metadata.to_string() })?)
    }

    /// Assigns something to a component, taking it from the one that served it before.
    pub(crate) async fn add(&self, id: &ComponentId, metadata: &Metadata) -> Result<()> {
        let holder = holder_key(metadata)?;
        self.commit(metadata, || async {
            let earlier = self.entry(&holder).await?;
            let other = earlier.as_ref().map(component).transpose()?.filter(|holder| holder != id);
            let batch = match metadata {
                Metadata::DevAddrPrefix(prefix) if earlier.is_none() || other.is_some() => {
                    self.guard(id, prefix).await?
                }
                _ => Batch::new(),
            };
            let batch = batch.expect_entry(&holder, earlier.as_ref());
            let batch = match other {
                Some(other) => batch.delete(served_key(&other, metadata)?),
                None => batch,
            };
            Ok(batch.put(holder.clone(), id.to_string()).put(served_key(id, metadata)?, ""))
        })
        .await
    }

    /// Removes something from what a component serves, unless another one serves it by now.
    pub(crate) async fn delete(&self, id: &ComponentId, metadata: &Metadata) -> Result<()> {
        let holder = holder_key(metadata)?;
        self.commit(metadata, || async {
            let earlier = self.entry(&holder).await?;
            match earlier.as_ref().map(component).transpose()? {
                Some(current) if current == *id => {
                    let batch = Batch::new().expect_entry(&holder, earlier.as_ref());
                    Ok(batch.delete(holder.clone()).delete(served_key(id, metadata)?))
                }
                _ => Ok(Batch::new()),
            }
        })
        .await
    }

    /// Starts a batch that adds a prefix to a network broker; fails if it overlaps one of another broker, or if there
    /// are too many to tell.
    async fn guard(&self, id: &ComponentId, prefix: &DevAddrPrefix) -> Result<Batch> {
        let guard = key(ServiceName::Broker, "guard/dev_addr_prefix")?;
        let earlier = self.entry(&guard).await?;
        let holders = key(ServiceName::Broker, "holder/")?;
        let entries = self.list(&key(ServiceName::Broker, "holder/dev_addr_prefix:")?, PREFIXES_MAX).await?;
        if entries.len() >= PREFIXES_MAX {
            return Err(Error::TooManyPrefixes(PREFIXES_MAX));
        }
        for entry in entries {
            let (served, holder) = (metadata(&entry, &holders)?, component(&entry)?);
            if matches!(&served, Metadata::DevAddrPrefix(other) if holder != *id && other.overlaps(prefix)) {
                return Err(Error::Taken { what: format!("prefix {prefix}"), holder: holder.into() });
            }
        }
        Ok(Batch::new().expect_entry(&guard, earlier.as_ref()).put(guard, ""))
    }

    async fn entry(&self, key: &Key) -> Result<Option<Entry>> {
        let entry = self.store.get_one(key).await?;
        Ok(entry)
    }

    /// Lists the records under a prefix, page by page.
    async fn list(&self, prefix: &Key, limit: usize) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        while entries.len() < limit {
            let wanted = (limit - entries.len()).min(LIST_MAX);
            let page = self.store.list(prefix, entries.last().map(|entry| &entry.key), wanted).await?;
            let complete = page.len() < wanted;
            entries.extend(page);
            if complete {
                break;
            }
        }
        Ok(entries)
    }

    /// Commits what `batch` builds, and builds it again on a conflict.
    async fn commit<F>(&self, what: &impl ToString, batch: impl Fn() -> F) -> Result<()>
    where
        F: Future<Output = Result<Batch>>,
    {
        let attempt = async || Ok::<_, Error>((self.store.commit(batch().await?).await? == Commit::Done).then_some(()));
        let done = store::retry(ATTEMPTS_MAX, attempt).await?;
        done.ok_or_else(|| Error::Conflict { what: what.to_string() })
    }
}

fn key(service: ServiceName, path: &str) -> Result<Key> {
    Ok(Key::new(&Tag::service(service.as_str())?, path)?)
}

fn announcement_key(service: ServiceName, id: &ComponentId) -> Result<Key> {
    key(service, &format!("announcement/{id}"))
}

fn holder_key(metadata: &Metadata) -> Result<Key> {
    key(metadata.service(), &format!("holder/{metadata}"))
}

fn served_key(id: &ComponentId, metadata: &Metadata) -> Result<Key> {
    key(metadata.service(), &format!("served/{id}/{metadata}"))
}

fn record(entry: &Entry) -> Result<StoredAnnouncement> {
    serde_json::from_slice(&entry.value).map_err(Error::record)
}

/// Parses the component that an entry under `holder/` names.
fn component(entry: &Entry) -> Result<ComponentId> {
    let id = std::str::from_utf8(&entry.value).map_err(Error::record)?;
    id.parse().map_err(|error: IdError| Error::record(error))
}

fn metadata(entry: &Entry, prefix: &Key) -> Result<Metadata> {
    let text = entry.key.path().strip_prefix(prefix.path()).unwrap_or_default();
    text.parse().map_err(|error: Error| Error::record(error))
}
