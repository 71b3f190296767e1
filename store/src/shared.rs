//! The embedded store of a running process, for others on the same machine: asked over a socket in its folder.
//!
//! Only one process can open the file. Whoever holds it may [`serve`] it, and an operator's commands then work beside it
//! as they would alone. The socket is as private as the file: whoever reaches it can do everything.

mod serve;
mod wire;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::{net::UnixStream, sync::Mutex};

pub use self::serve::serve;
pub(crate) use self::wire::base64;
use self::wire::{Failure, Question, read, write};
use crate::{
    Batch, Commit, Entry, Error, Hint, Key, Lease, Page, Rate, Store, Token, Watch, check_after, check_count,
    hint::{Hub, check_channel},
    queue::check_consumer,
};

/// The store that another process holds.
pub struct Shared {
    path: PathBuf,
    /// None while a question is on its way, and after one whose answer was not read to its end.
    connection: Mutex<Option<UnixStream>>,
}

impl Shared {
    /// Reaches the process that listens at `path`; [`Error::Unavailable`] when none does.
    pub async fn connect(path: &Path) -> Result<Self, Error> {
        let connection = connect(path).await?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(Some(connection)) })
    }

    /// Asks one question; the answer is what the other process's store gave.
    async fn ask<T: DeserializeOwned>(&self, question: &Question) -> Result<T, Error> {
        let mut place = self.connection.lock().await;
        let mut connection = match place.take() {
            Some(connection) => connection,
            None => connect(&self.path).await?,
        };
        write(&mut connection, question).await.map_err(away)?;
        let answer: Result<T, Failure> = read(&mut connection).await.map_err(away)?;
        *place = Some(connection);
        Ok(answer?)
    }
}

#[async_trait]
impl Store for Shared {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        check_count(keys)?;
        self.ask(&Question::Get(keys.to_vec())).await
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        check_after(prefix, after)?;
        self.ask(&Question::List(prefix.clone(), after.cloned(), limit)).await
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        self.ask(&Question::Page(prefix.clone(), offset, limit)).await
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        batch.check()?;
        self.ask(&Question::Commit(batch)).await
    }

    async fn take_token(&self, key: &Key, rate: Rate) -> Result<Token, Error> {
        self.ask(&Question::TakeToken(key.clone(), rate)).await
    }

    async fn reserve(&self, queue: &Key, consumer: &str, count: usize, time: Duration) -> Result<Vec<Lease>, Error> {
        check_consumer(consumer)?;
        self.ask(&Question::Reserve(queue.clone(), consumer.to_owned(), count, time)).await
    }

    async fn ack(&self, queue: &Key, lease: &Lease) -> Result<bool, Error> {
        self.ask(&Question::Ack(queue.clone(), lease.clone())).await
    }

    async fn notify(&self, channel: &str, message: Bytes) -> Result<(), Error> {
        check_channel(channel)?;
        self.ask(&Question::Notify(channel.to_owned(), Hint::Message(message))).await
    }

    fn watch(&self, channel: &str) -> Result<Watch, Error> {
        check_channel(channel)?;
        let hub = Hub::default();
        let watch = hub.watch(channel);
        tokio::spawn(listen(self.path.clone(), channel.to_owned(), hub));
        Ok(watch)
    }

    async fn check(&self) -> Result<(), Error> {
        self.ask(&Question::Check).await
    }
}

/// Passes hints on until the other process ends, or nobody hears them any more.
async fn listen(path: PathBuf, channel: String, hub: Hub) {
    let Ok(mut connection) = connect(&path).await else { return };
    if write(&mut connection, &Question::Watch(channel.clone())).await.is_err() {
        return;
    }
    while let Ok(hint) = read::<Hint>(&mut connection).await
        && hub.tell(&channel, hint)
    {}
}

async fn connect(path: &Path) -> Result<UnixStream, Error> {
    UnixStream::connect(path).await.map_err(away)
}

fn away(source: std::io::Error) -> Error {
    Error::unavailable("ask the process that holds the store", source)
}
