//! The embedded store of another process on the same machine, over a Unix socket.
//!
//! Only one process can open the store's file. It may [`serve`] the store, so that an operator's commands work while it
//! runs. Protect the socket like the file: any client can do everything.

mod serve;
mod wire;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use tokio::{net::UnixStream, sync::Mutex};

pub use self::serve::serve;
use self::wire::{Failure, Request, read, write};
use crate::{
    Batch, Commit, Entry, Error, Key, Page, Rate, Snapshot, Store, Tag, TakenTokens, UsageCursor, UsagePage, Version,
    check_after, check_count,
    snapshot::{Part, PartSender},
};

/// A store that another process has open.
pub struct SocketStore {
    path: PathBuf,
    /// None during a request, and after one that did not complete.
    connection: Mutex<Option<UnixStream>>,
}

impl SocketStore {
    /// Connects to the process that listens at `path`; [`Error::Unavailable`] when there is none.
    pub async fn connect(path: &Path) -> Result<Self, Error> {
        let connection = connect(path).await?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(Some(connection)) })
    }

    /// Sends a request and returns the result of the other process's store.
    async fn call<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => connect(&self.path).await?,
        };
        write(&mut connection, request).await.map_err(unavailable)?;
        let response: Result<T, Failure> = read(&mut connection).await.map_err(unavailable)?;
        *slot = Some(connection);
        Ok(response?)
    }
}

#[async_trait]
impl Store for SocketStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        check_count(keys)?;
        self.call(&Request::Get(keys.to_vec())).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        check_after(prefix, after)?;
        self.call(&Request::List(prefix.clone(), after.cloned(), limit)).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.call(&Request::Page(prefix.clone(), offset, limit)).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        batch.check()?;
        self.call(&Request::Commit(batch)).await
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        self.call(&Request::TakeTokens(key.clone(), rate, wanted)).await
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.call(&Request::Usage(from.cloned())).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        check_count(tags)?;
        self.call(&Request::UsageOf(tags.to_vec())).await
    }

    /// Uses a connection of its own, which other calls need not wait for.
    async fn snapshot(&self) -> Result<Snapshot, Error> {
        let mut connection = connect(&self.path).await?;
        write(&mut connection, &Request::Snapshot).await.map_err(unavailable)?;
        let version: Result<Version, Failure> = read(&mut connection).await.map_err(unavailable)?;
        let (parts, snapshot) = Snapshot::new(version?);
        tokio::spawn(receive(connection, parts));
        Ok(snapshot)
    }

    async fn check(&self) -> Result<(), Error> {
        self.call(&Request::Check).await
    }
}

/// Passes parts on up to the last one, or until nobody wants more.
async fn receive(mut connection: UnixStream, parts: PartSender) {
    loop {
        let part = match read::<Result<Part, Failure>>(&mut connection).await {
            Ok(part) => part.map_err(Error::from),
            Err(error) => Err(unavailable(error)),
        };
        let is_last = !matches!(part, Ok(Part::Entries(_)));
        if parts.send(part).await.is_err() || is_last {
            return;
        }
    }
}

async fn connect(path: &Path) -> Result<UnixStream, Error> {
    UnixStream::connect(path).await.map_err(unavailable)
}

fn unavailable(source: std::io::Error) -> Error {
    Error::unavailable("ask the process that holds the store", source)
}
