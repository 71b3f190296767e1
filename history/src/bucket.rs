//! A bucket of objects, in which handlers that share no disk see each other's sealed files. Each puts its own there,
//! and nobody else's; a file is there as a whole or not at all.

mod cache;
mod connect;
pub(crate) mod ledger;
pub(crate) mod listing;
pub(crate) mod listing_cache;
mod ranges;

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, future, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, path::Path as Key};
use parking_lot::{Mutex, MutexGuard};
use tokio::{runtime::Handle, sync::watch};
use types::Random;

use self::{
    cache::Cache,
    ledger::Ledger,
    listing::{HANDLER, Listing, Object, REMOVED, removal_key},
    listing_cache::{CachedListing, ListingCache},
};
use crate::{
    Error, OwnerOf,
    directory::{LOCK, removed::Removal, write_whole},
    settings::bucket::BucketSettings,
};

/// Directory of copies of others' objects, below that of history.
pub(crate) const CACHE: &str = "bucket/cache";
/// Number of requests at once that one call makes. A server that is far away takes long for each.
pub(crate) const REQUESTS_MAX: usize = 8;

/// A bucket that handlers share. All methods wait: they are not for async code.
pub(crate) struct Bucket {
    store: Arc<dyn ObjectStore>,
    url: String,
    /// The folder in the bucket.
    folder: String,
    /// Id of this directory in the bucket: handlers that share a directory are one.
    pub(crate) handler: String,
    root: PathBuf,
    cache: Cache,
    listing_cache: ListingCache,
    /// Set once the server has answered with a whole object where a range was asked for.
    lacks_ranges: AtomicBool,
    runtime: Handle,
    closed: watch::Sender<bool>,
    /// Held while this process brings the bucket up to date.
    changing: Mutex<()>,
}

/// The right to change what this directory has in the bucket.
pub(crate) struct BucketLock<'a> {
    // Given up before this process may try it again.
    _file: File,
    _own: MutexGuard<'a, ()>,
}

impl Bucket {
    /// Prepares to use the bucket of the settings; none if they name none. It need not be there now.
    pub(crate) fn open(
        root: &Path,
        settings: &BucketSettings,
        (random, owner_of): (&dyn Random, &OwnerOf),
    ) -> Result<Option<Self>, Error> {
        if settings.url.is_empty() {
            return Ok(None);
        }
        let (bucket, folder) = connect::parse_url(&settings.url)?;
        let runtime = Handle::try_current().map_err(|error| Error::Task(error.into()))?;
        let cache = Cache::open(root.join(CACHE), settings.cache_bytes_max, Arc::clone(owner_of))?;
        Ok(Some(Self {
            store: connect::connect(settings, bucket)?,
            url: settings.url.trim_end_matches('/').to_owned(),
            folder: folder.to_owned(),
            handler: handler_id(root, random)?,
            root: root.to_owned(),
            cache,
            listing_cache: ListingCache::default(),
            lacks_ranges: AtomicBool::new(false),
            runtime,
            closed: watch::Sender::new(false),
            changing: Mutex::default(),
        }))
    }

    /// Ends what waits, and lets nothing begin.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// None while another process that shares the directory has the lock.
    pub(crate) fn lock(&self) -> Result<Option<BucketLock<'_>>, Error> {
        let own = self.changing.lock();
        let path = self.dir().join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::file("open", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(BucketLock { _file: lock, _own: own })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::file("lock", &path)(error)),
        }
    }

    /// Reads the list of files that this directory has put into the bucket so far.
    pub(crate) fn ledger(&self, _lock: &BucketLock<'_>) -> Result<Ledger, Error> {
        Ledger::read(&self.dir())
    }

    /// Everything that is there.
    pub(crate) fn list(&self) -> Result<Listing, Error> {
        let found = self.wait("list", self.list_folder(String::new()))?;
        Ok(self.listing(found))
    }

    /// Returns the objects of an application. If they cannot be listed now, those of the last look, with the reason.
    pub(crate) fn look(&self, app_id: &str) -> Result<CachedListing, Error> {
        self.listing_cache.look(app_id, &self.url, || self.list_application(app_id))
    }

    /// Has the next query of an application list the bucket again.
    pub(crate) fn look_again(&self, app_id: &str) {
        self.listing_cache.forget(app_id);
    }

    /// Lists the objects of an application by all handlers.
    fn list_application(&self, app_id: &str) -> Result<Listing, Error> {
        let folder = (!self.folder.is_empty()).then(|| Key::parse(&self.folder)).transpose();
        let found = self.wait("list", async {
            let handlers = self.store.list_with_delimiter(folder?.as_ref()).await?.common_prefixes;
            let handlers = handlers.iter().filter_map(|key| self.below(key)).filter(|key| key.starts_with(HANDLER));
            let folders = handlers.map(|handler| format!("{handler}/app={app_id}")).chain([REMOVED.to_owned()]);
            let found = future::try_join_all(folders.map(|folder| self.list_folder(folder)));
            Ok(found.await?.concat())
        })?;
        Ok(self.listing(found))
    }

    /// Puts files of this directory there, with their contents, all at once. After an error, some may be there.
    pub(crate) fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        let puts = files.into_iter().map(|(file, content)| self.put_object(self.key(&self.own_key(&file)), content));
        self.wait("write", future::try_join_all(puts)).map(drop)
    }

    /// Puts a small file of this directory there.
    pub(crate) fn put_text(&self, file: &str, text: String) -> Result<(), Error> {
        self.put(&self.own_key(file), text.into_bytes())
    }

    /// Says that something was removed.
    pub(crate) fn put_removed(&self, removal: &Removal) -> Result<(), Error> {
        self.put(&removal_key(removal), Vec::new())
    }

    /// Deletes files that this directory has put there.
    pub(crate) fn delete_files(&self, files: &BTreeSet<String>) -> Result<(), Error> {
        let deletes = files.iter().map(|file| self.delete_if_there(self.key(&self.own_key(file))));
        self.wait("delete", stream::iter(deletes).buffer_unordered(REQUESTS_MAX).try_collect())
    }

    /// Forgets that something was removed.
    pub(crate) fn delete_removed(&self, removal: &Removal) -> Result<(), Error> {
        self.delete(&removal_key(removal))
    }

    /// Deletes an object, whoever has put it there.
    pub(crate) fn delete_object(&self, object: &Object) -> Result<(), Error> {
        self.delete(&object.key)
    }

    /// Returns true if the object is a file of this directory that is here.
    pub(crate) fn is_here(&self, object: &Object) -> bool {
        object.handler() == self.handler && self.root.join(object.file()).exists()
    }

    /// A copy of an object on this disk.
    pub(crate) fn fetch(&self, object: &Object) -> Result<PathBuf, Error> {
        if let Some(path) = self.cache.get(object) {
            return Ok(path);
        }
        let mut content = self.read(object)?;
        if content.is_none()
            && let Some(app_id) = object.app_id()
        {
            self.look_again(app_id);
            let listed = self.look(app_id)?.listing.objects.into_iter().find(|listed| listed.key == object.key);
            content = listed.map(|listed| self.read(&listed)).transpose()?.flatten();
        }
        let changed = || Error::damaged(&self.url_of(object), "somebody has changed it since the bucket was listed");
        self.cache.add(object, &content.ok_or_else(changed)?)
    }

    /// All of an object. None if it is not what was listed any more.
    fn read(&self, object: &Object) -> Result<Option<Bytes>, Error> {
        if object.bytes > self.cache.bytes_max {
            let why = "it is larger than cache_bytes_max of history.bucket";
            return Err(Error::damaged(&self.url_of(object), why));
        }
        let key = self.key(&object.key);
        self.wait("read a file", async {
            let found = self.store.get(&key?).await?;
            // Another one is not read into memory: it may be of any length.
            Ok(if object.is_same(&found.meta) { Some(found.bytes().await?) } else { None })
        })
    }

    /// Forgets the copies of an object and of its parts, which may be damaged.
    pub(crate) fn forget(&self, object: &Object) -> Result<(), Error> {
        self.cache.remove_parts(object)?;
        self.cache.remove(&object.key)
    }

    /// Returns true if the object can be read without a connection.
    pub(crate) fn has_copy(&self, object: &Object) -> bool {
        self.cache.get(object).is_some()
    }

    /// Deletes copies of what is not there any more.
    pub(crate) fn forget_all_but(&self, listing: &Listing) -> Result<(), Error> {
        let keys: std::collections::HashSet<_> = listing.objects.iter().map(|object| object.key.as_str()).collect();
        self.cache.retain(|key| keys.contains(key))
    }

    /// Returns the URL of an object, for people.
    pub(crate) fn url_of(&self, object: &Object) -> PathBuf {
        format!("{}/{}", self.url, object.key).into()
    }

    fn dir(&self) -> PathBuf {
        self.root.join("bucket")
    }

    fn own_key(&self, file: &str) -> String {
        format!("{HANDLER}{}/{file}", self.handler)
    }

    fn put(&self, key: &str, content: Vec<u8>) -> Result<(), Error> {
        self.wait("write", self.put_object(self.key(key), content))
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        self.wait("delete", self.delete_if_there(self.key(key)))
    }

    async fn put_object(&self, key: object_store::Result<Key>, content: Vec<u8>) -> object_store::Result<()> {
        self.store.put(&key?, PutPayload::from(content)).await.map(drop)
    }

    async fn delete_if_there(&self, key: object_store::Result<Key>) -> object_store::Result<()> {
        match self.store.delete(&key?).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            result => result,
        }
    }

    async fn list_folder(&self, folder: String) -> object_store::Result<Vec<ObjectMeta>> {
        let path = [self.folder.as_str(), &folder].join("/");
        self.store.list(Some(&Key::parse(path.trim_matches('/'))?)).try_collect().await
    }

    fn listing(&self, found: Vec<ObjectMeta>) -> Listing {
        let mut listing = Listing::default();
        for object in found {
            if let Some(key) = self.below(&object.location) {
                listing.add(key, object.size, object.e_tag.clone());
            }
        }
        listing
    }

    /// The part of a key below the folder.
    fn below<'a>(&self, key: &'a Key) -> Option<&'a str> {
        key.as_ref().strip_prefix(self.folder.as_str()).map(|key| key.trim_start_matches('/'))
    }

    fn key(&self, key: &str) -> object_store::Result<Key> {
        Ok(Key::parse([self.folder.as_str(), key].join("/").trim_start_matches('/'))?)
    }

    fn wait<T>(&self, what: &'static str, work: impl Future<Output = object_store::Result<T>>) -> Result<T, Error> {
        let mut closed = self.closed.subscribe();
        let done = self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = closed.wait_for(|is_closed| *is_closed) => None,
                result = work => Some(result),
            }
        });
        done.ok_or(Error::Stopped)?.map_err(|source| Error::bucket(what, &self.url, &source))
    }
}

/// The id of a directory's handler, which is made once.
fn handler_id(root: &Path, random: &dyn Random) -> Result<String, Error> {
    let path = root.join("bucket").join("handler");
    match fs::read_to_string(&path) {
        Ok(id) if !id.is_empty() => Ok(id),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file("read", &path)(error)),
        _ => {
            let id = hex::encode(random.array::<8>());
            write_whole(&path, &id)?;
            Ok(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const KEY: &str = "handler=h/app=a/day=2026-01-01/5-17-0-1.parquet";

    /// A bucket in memory, of which copies are in a directory.
    fn bucket(dir: &Path) -> Bucket {
        Bucket {
            store: Arc::new(InMemory::new()),
            url: "s3://history".to_owned(),
            folder: String::new(),
            handler: "other".to_owned(),
            root: dir.to_owned(),
            cache: Cache::open(dir.join(CACHE), 1000, Arc::new(ToString::to_string)).unwrap(),
            listing_cache: ListingCache::default(),
            lacks_ranges: AtomicBool::new(false),
            runtime: Handle::current(),
            closed: watch::Sender::new(false),
            changing: Mutex::default(),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn files_are_put_and_deleted_several_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = bucket(dir.path());
        let names = |numbers: std::ops::Range<usize>| {
            numbers.map(|number| format!("app=a/day=2026-01-01/5-17-0-{number}.parquet")).collect::<BTreeSet<_>>()
        };
        let change = move || {
            bucket.put_files(names(0..20).into_iter().map(|name| (name, b"file".to_vec())).collect()).unwrap();
            // Some are not there.
            bucket.delete_files(&names(5..40)).unwrap();
            let left = bucket.list().unwrap();
            let left = left.objects.iter().map(|object| object.file().to_owned()).collect::<BTreeSet<_>>();
            assert_eq!(left, names(0..5));
        };
        tokio::task::spawn_blocking(change).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_with_another_tag_is_only_read_once_it_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = bucket(dir.path());
        let read = move || {
            bucket.put(KEY, b"one".to_vec()).unwrap();
            let listed = bucket.look("a").unwrap().listing.objects.remove(0);
            assert_eq!(bucket.read(&listed).unwrap().unwrap(), "one");
            bucket.put(KEY, b"two".to_vec()).unwrap();
            assert_eq!(bucket.read(&listed).unwrap(), None);
            assert_eq!(fs::read(bucket.fetch(&listed).unwrap()).unwrap(), b"two");
            bucket.forget(&listed).unwrap();
            bucket.delete(KEY).unwrap();
            assert!(bucket.fetch(&listed).unwrap_err().is_gone());
        };
        tokio::task::spawn_blocking(read).await.unwrap();
    }
}
