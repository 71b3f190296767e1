//! The store that several processes share: one Redis, or a Redis Cluster.
//!
//! Each write is one script, which Redis runs alone; scripts only touch keys of one tag, and name all of them. Time is
//! ours, so that both back ends agree on what has expired; Redis' own expiry only clears away what is long gone.

mod connection;
mod listener;
mod names;
mod scripts;
mod settings;

use std::time::Duration;

use ::redis::{RedisError, ScriptInvocation};
use async_trait::async_trait;
use bytes::Bytes;

pub use self::settings::RedisSettings;
use self::{connection::Connection, listener::Listener, names::Names, scripts::Scripts};
use crate::{
    Batch, Clock, Commit, Entry, Error, Key, LEASES_MAX, LIST_MAX, Lease, Page, Rate, Store, Token, Watch, check_after,
    check_count,
    hint::check_channel,
    queue::{self, check_consumer},
    record::Record,
};

/// The format that this version writes, and the last one that it reads.
const FORMAT: u64 = 1;

/// A store in Redis.
///
/// How durable a commit is when it returns is the server's to say: nothing is lost with `appendfsync always`, up to a
/// second with `everysec`. When a connection breaks, the cluster client may repeat a commit that was done: what it
/// expected then is a conflict.
pub struct Redis {
    connection: Connection,
    listener: Listener,
    scripts: Scripts,
    names: Names,
    clock: Clock,
}

impl Redis {
    /// Connects; [`Error::Unavailable`] when nobody answers, [`Error::Newer`] when a later version wrote there.
    pub async fn connect(settings: &RedisSettings, clock: Clock) -> Result<Self, Error> {
        settings.check()?;
        let names = Names(settings.prefix.clone());
        let connection = Connection::open(settings).await?;
        let timeout = Duration::from_millis(settings.response_timeout_ms);
        let listener = Listener::start(connection::nodes(settings)?, names.channels(), timeout);
        let store = Self { connection, listener, scripts: Scripts::new(Names(settings.prefix.clone())), names, clock };
        store.check_format().await?;
        Ok(store)
    }

    /// Marks an empty Redis with our format, and refuses one of a later format.
    async fn check_format(&self) -> Result<(), Error> {
        let name = self.names.own("format");
        let failed = |error| Error::unavailable("read the format of the store", error);
        let mut connection = self.connection.clone();
        let mut mark = ::redis::cmd("SET");
        mark.arg(&name).arg(FORMAT).arg("NX").exec_async(&mut connection).await.map_err(failed)?;
        let found: u64 = ::redis::cmd("GET").arg(&name).query_async(&mut connection).await.map_err(failed)?;
        if found > FORMAT { Err(Error::Newer { found, supported: FORMAT }) } else { Ok(()) }
    }

    async fn run<T: ::redis::FromRedisValue>(
        &self,
        what: &'static str,
        call: ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let answer = call.invoke_async(&mut self.connection.clone()).await;
        answer.map_err(|error: RedisError| Error::unavailable(what, error))
    }

    /// Reads keys of one tag.
    async fn get_of_tag(&self, keys: &[&Key], now: u64) -> Result<Vec<Option<Entry>>, Error> {
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let [entries, ..] = self.names.tag(first);
        let mut command = ::redis::cmd("HMGET");
        command.arg(entries);
        for key in keys {
            command.arg(key.path());
        }
        let found: Result<Vec<Option<Bytes>>, _> = command.query_async(&mut self.connection.clone()).await;
        let found = found.map_err(|error| Error::unavailable("get entries", error))?;
        let decode = |(key, bytes): (&&Key, Option<Bytes>)| match bytes {
            Some(bytes) => Ok(Record::decode(bytes, key.as_str())?.entry((*key).clone(), now)),
            None => Ok(None),
        };
        keys.iter().zip(found).map(decode).collect()
    }
}

#[async_trait]
impl Store for Redis {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, Error> {
        check_count(keys)?;
        let now = self.clock.now_ms();
        let mut places: Vec<usize> = (0..keys.len()).collect();
        places.sort_by_key(|place| keys[*place].tag());
        let mut entries = vec![None; keys.len()];
        for places in places.chunk_by(|left, right| keys[*left].tag() == keys[*right].tag()) {
            let of_tag: Vec<&Key> = places.iter().map(|place| &keys[*place]).collect();
            for (place, entry) in places.iter().zip(self.get_of_tag(&of_tag, now).await?) {
                entries[*place] = entry;
            }
        }
        Ok(entries)
    }

    async fn list(&self, prefix: &Key, after: Option<&Key>, limit: usize) -> Result<Vec<Entry>, Error> {
        check_after(prefix, after)?;
        let now = self.clock.now_ms();
        let call = self.scripts.list(prefix, after, limit.min(LIST_MAX), now);
        let found: Vec<(String, Bytes)> = self.run("list entries", call).await?;
        entries(prefix, found, now)
    }

    async fn page(&self, prefix: &Key, offset: usize, limit: usize) -> Result<Page, Error> {
        let now = self.clock.now_ms();
        // What Redis counts with is exact up to here.
        let call = self.scripts.page(prefix, offset.min(1 << 53), limit.min(LIST_MAX), now);
        let (total, found): (usize, Vec<(String, Bytes)>) = self.run("list entries", call).await?;
        Ok(Page { entries: entries(prefix, found, now)?, total })
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        let Some(key) = batch.check()? else { return Ok(Commit::Done) };
        let queues = scripts::queues(&batch);
        let call = self.scripts.commit(key, &batch, &queues, self.clock.now_ms());
        match self.run::<i64>("commit a batch", call).await? {
            1 => Ok(Commit::Done),
            0 => Ok(Commit::Conflict),
            number => Err(queue::full(queues.get(number.unsigned_abs() as usize - 1).copied().unwrap_or(key))),
        }
    }

    async fn take_token(&self, key: &Key, rate: Rate) -> Result<Token, Error> {
        let call = self.scripts.take_token(key, rate, self.clock.now_ms());
        match self.run("take a token", call).await? {
            (1_u8, micros) => Ok(rate.taken(micros)),
            (_, micros) => Ok(Token::Wait(Duration::from_micros(micros))),
        }
    }

    async fn reserve(
        &self,
        queue: &Key,
        consumer: &str,
        count: usize,
        visible_after: Duration,
    ) -> Result<Vec<Lease>, Error> {
        check_consumer(consumer)?;
        let now = self.clock.now_ms();
        let lease = now..queue::lease_end(now, visible_after);
        let call = self.scripts.reserve(queue, consumer, count.min(LEASES_MAX), lease);
        let found: Vec<(u64, u32, Bytes)> = self.run("reserve messages", call).await?;
        let lease = |(id, deliveries, value)| Lease { id, consumer: consumer.to_owned(), deliveries, value };
        Ok(found.into_iter().map(lease).collect())
    }

    async fn ack(&self, queue: &Key, lease: &Lease) -> Result<bool, Error> {
        let call = self.scripts.ack(queue, lease);
        self.run("acknowledge a message", call).await
    }

    async fn notify(&self, channel: &str, message: Bytes) -> Result<(), Error> {
        check_channel(channel)?;
        let mut command = ::redis::cmd("PUBLISH");
        command.arg(format!("{}{channel}", self.names.channels())).arg(&message[..]);
        let sent = command.exec_async(&mut self.connection.clone()).await;
        sent.map_err(|error| Error::unavailable("send a hint", error))
    }

    fn watch(&self, channel: &str) -> Result<Watch, Error> {
        check_channel(channel)?;
        self.listener.watch(channel)
    }

    async fn check(&self) -> Result<(), Error> {
        let mut command = ::redis::cmd("SET");
        command.arg(self.names.own("checked")).arg(self.clock.now_ms()).arg("PX").arg(60_000);
        let written = command.exec_async(&mut self.connection.clone()).await;
        written.map_err(|error| Error::unavailable("check Redis", error))
    }
}

/// What a script found under a prefix.
fn entries(prefix: &Key, found: Vec<(String, Bytes)>, now: u64) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(found.len());
    for (path, bytes) in found {
        let key = prefix.sibling(&path);
        entries.extend(Record::decode(bytes, key.as_str())?.entry(key, now));
    }
    Ok(entries)
}
