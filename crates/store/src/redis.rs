//! A store in Redis, behind sentinels or not, or a Redis Cluster, which several processes can share.
//!
//! Each write is one script, which Redis runs atomically. Scripts use the keys of one tag only, and declare all of
//! them. They get the time from us, so that all back ends agree on expired entries; Redis' own expiry only cleans up
//! later.

mod commits;
mod connection;
mod names;
mod scripts;
mod settings;
mod usage;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use ::redis::{RedisError, ScriptInvocation};
use async_trait::async_trait;
use bytes::Bytes;
use link::redis::Connection;

pub use self::settings::RedisSettings;
use self::{commits::ConfirmedCommits, names::Names, scripts::Scripts};
use crate::{
    Batch, Commit, Entry, Error, Key, LIST_MAX, Page, Rate, Store, StoreClock, Tag, TakenTokens, UsageCursor,
    UsagePage, check_after, check_count,
    clock::steadiness::{CommitTime, Steadiness},
    entry::record::Record,
};

/// The format that this version writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// Pause before a Redis that is loading is asked again.
const LOADING_PAUSE: Duration = Duration::from_secs(1);
/// Key of the last time that could be believed.
const TIME: &str = "time";
/// Interval at which the time is stored, in milliseconds.
const TIME_INTERVAL_MS: u64 = 60_000;

/// A store in Redis.
///
/// Durability depends on the server: `appendfsync always` loses nothing, `everysec` up to a second. A failover loses what
/// no replica has, so `confirming_replicas` waits for some. When a connection breaks, the cluster client may repeat a
/// commit that was applied; its conditions then conflict.
pub struct Redis {
    connection: Connection,
    /// `None` if no replica needs to confirm a commit.
    confirmed: Option<ConfirmedCommits>,
    scripts: Scripts,
    names: Names,
    clock: StoreClock,
    steadiness: Steadiness,
    /// The time that was stored last.
    saved_time: AtomicU64,
}

impl Redis {
    /// Connects; [`Error::Unavailable`] when the server does not answer, [`Error::Newer`] when a newer version wrote to
    /// it.
    ///
    /// Waits for a server that is still loading its data.
    pub async fn connect(settings: &RedisSettings, clock: StoreClock) -> Result<Self, Error> {
        settings.check()?;
        let connecting = async {
            loop {
                match Self::try_connect(settings, clock.clone()).await {
                    Err(error) if is_starting(&error) => tracing::info!("Redis is loading its data: waiting for it"),
                    result => return result,
                }
                tokio::time::sleep(LOADING_PAUSE).await;
            }
        };
        let limit = Duration::from_millis(settings.loading_timeout_ms);
        let timed_out = |error: tokio::time::error::Elapsed| Error::unavailable("wait until Redis has loaded", error);
        tokio::time::timeout(limit, connecting).await.map_err(timed_out)?
    }

    async fn try_connect(settings: &RedisSettings, clock: StoreClock) -> Result<Self, Error> {
        let names = Names(settings.prefix.clone());
        let mut connection = connection::open(settings).await?;
        let confirmed = ConfirmedCommits::open(settings).await?;
        let scripts = Scripts::new(Names(settings.prefix.clone()));
        let last_time = match check_format(&names, &mut connection).await? {
            // There is nothing yet that could expire.
            Format::Written => Some(clock.now_ms()),
            Format::Found => last_time(&names, &mut connection).await?,
        };
        let (steadiness, saved_time) = (Steadiness::new(clock.clone(), last_time), AtomicU64::new(0));
        Ok(Self { connection, confirmed, scripts, names, clock, steadiness, saved_time })
    }

    /// Stores the time from time to time, so that the next start knows whether the clock has jumped.
    async fn save_time(&self, time: CommitTime) {
        let saved = self.saved_time.load(Ordering::Relaxed);
        if !time.is_steady() || time.now.abs_diff(saved) < TIME_INTERVAL_MS {
            return;
        }
        self.saved_time.store(time.now, Ordering::Relaxed);
        let mut command = ::redis::cmd("SET");
        command.arg(self.names.own(TIME)).arg(time.now);
        // Without it, the next start does not believe its clock for some minutes.
        if let Err(error) = command.exec_async(&mut self.connection.clone()).await {
            tracing::debug!(%error, "cannot store the time");
        }
    }

    async fn run<T: ::redis::FromRedisValue>(
        &self,
        what: &'static str,
        call: ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let response = call.invoke_async(&mut self.connection.clone()).await;
        response.map_err(|error: RedisError| Error::unavailable(what, error))
    }

    async fn get_of_tag(&self, keys: &[&Key], now: u64) -> Result<Vec<Option<Entry>>, Error> {
        let Some(first) = keys.first() else { return Ok(Vec::new()) };
        let [entries, ..] = self.names.tag(first.tag());
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
        let mut positions: Vec<usize> = (0..keys.len()).collect();
        positions.sort_by_key(|position| keys[*position].tag());
        let mut entries = vec![None; keys.len()];
        for positions in positions.chunk_by(|left, right| keys[*left].tag() == keys[*right].tag()) {
            let of_tag: Vec<&Key> = positions.iter().map(|position| &keys[*position]).collect();
            for (position, entry) in positions.iter().zip(self.get_of_tag(&of_tag, now).await?) {
                entries[*position] = entry;
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
        // Redis counts in floating point, which is exact up to here.
        let call = self.scripts.page(prefix, offset.min(1 << 53), limit.min(LIST_MAX), now);
        let (total, found): (usize, Vec<(String, Bytes)>) = self.run("list entries", call).await?;
        Ok(Page { entries: entries(prefix, found, now)?, total })
    }

    async fn commit(&self, batch: Batch) -> Result<Commit, Error> {
        let Some(key) = batch.check()? else { return Ok(Commit::Done) };
        let time = self.steadiness.look();
        self.save_time(time).await;
        let call = self.scripts.commit(key, &batch, time);
        let what = "commit a batch";
        let is_done = match &self.confirmed {
            Some(confirmed) => confirmed.run(&call).await.map_err(|error| Error::unavailable(what, error))?,
            None => self.run(what, call).await?,
        };
        Ok(if is_done { Commit::Done } else { Commit::Conflict })
    }

    async fn take_tokens(&self, key: &Key, rate: Rate, wanted: u32) -> Result<TakenTokens, Error> {
        let call = self.scripts.take_tokens(key, rate, wanted, self.clock.now_ms());
        let (taken, micros) = self.run("take tokens", call).await?;
        Ok(rate.taken(taken, micros))
    }

    async fn usage(&self, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
        self.usage_page(from).await
    }

    async fn usage_of(&self, tags: &[Tag]) -> Result<Vec<u64>, Error> {
        check_count(tags)?;
        self.bytes_of(tags).await
    }

    async fn check(&self) -> Result<(), Error> {
        let mut command = ::redis::cmd("SET");
        command.arg(self.names.own("checked")).arg(self.clock.now_ms()).arg("PX").arg(60_000);
        let written = match &self.confirmed {
            Some(confirmed) => confirmed.set(command).await,
            None => command.exec_async(&mut self.connection.clone()).await,
        };
        written.map_err(|error| Error::unavailable("check Redis", error))
    }
}

/// Format of a Redis: written just now, or found there.
enum Format {
    Written,
    Found,
}

/// Writes the format into an empty Redis; refuses a newer format.
async fn check_format(names: &Names, connection: &mut Connection) -> Result<Format, Error> {
    let name = names.own("format");
    let failed = |error| Error::unavailable("read the format of the store", error);
    let mut mark = ::redis::cmd("SET");
    mark.arg(&name).arg(FORMAT).arg("NX");
    let written: Option<String> = mark.query_async(connection).await.map_err(failed)?;
    let found: u64 = ::redis::cmd("GET").arg(&name).query_async(connection).await.map_err(failed)?;
    match (found > FORMAT, written) {
        (true, _) => Err(Error::Newer { found, supported: FORMAT }),
        (false, Some(_)) => Ok(Format::Written),
        (false, None) => Ok(Format::Found),
    }
}

/// The last time that could be believed, if it is known.
async fn last_time(names: &Names, connection: &mut Connection) -> Result<Option<u64>, Error> {
    let found = ::redis::cmd("GET").arg(names.own(TIME)).query_async(connection).await;
    found.map_err(|error| Error::unavailable("read the time of the store", error))
}

/// Error codes of a Redis that has just started: it is loading its data, or its cluster is not complete yet.
const STARTING: [&str; 4] = ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN"];

/// Returns true if Redis refused because it has just started.
fn is_starting(error: &Error) -> bool {
    let Error::Unavailable { source: Some(source), .. } = error else { return false };
    let code = source.downcast_ref::<RedisError>().and_then(RedisError::code);
    code.is_some_and(|code| STARTING.contains(&code))
}

fn entries(prefix: &Key, found: Vec<(String, Bytes)>, now: u64) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(found.len());
    for (path, bytes) in found {
        let key = prefix.sibling(&path);
        entries.extend(Record::decode(bytes, key.as_str())?.entry(key, now));
    }
    Ok(entries)
}
