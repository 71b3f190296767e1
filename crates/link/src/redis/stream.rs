//! The commands of a stream with a consumer group.

use std::time::Duration;

use redis::{Cmd, RedisResult, Value, cmd};

use super::{
    connection::{Connection, RESPONSE_TIMEOUT},
    node::Node,
    reply::{self, Entry},
    settings::StreamSettings,
};

/// Time for which a read waits for new entries.
const BLOCK: Duration = Duration::from_secs(1);

/// A stream, read as one consumer of a group.
pub(super) struct Stream {
    connection: Connection,
    key: String,
    group: String,
    consumer: String,
}

/// The length of a stream, and the group's position in it. Redis counts from version 7 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) length: u64,
    /// Number of entries ever added to the stream.
    pub(super) added: Option<u64>,
    /// Number of entries that the group has read.
    pub(super) read: Option<u64>,
    /// The oldest entry.
    pub(super) first: Id,
    /// The newest entry that it has ever had.
    pub(super) last: Id,
    /// The newest entry that the group has read.
    pub(super) delivered: Id,
}

/// The id of an entry: milliseconds since 1970, and a number. Ids grow.
pub(super) type Id = (u64, u64);

impl Stream {
    pub(super) async fn open(node: &Node, settings: &StreamSettings, key: &str, consumer: &str) -> RedisResult<Self> {
        Ok(Self {
            connection: Connection::open(node, RESPONSE_TIMEOUT).await?,
            key: key.to_owned(),
            group: settings.group.clone(),
            consumer: consumer.to_owned(),
        })
    }

    /// Creates the group if it does not exist; it starts with the entries that are in the stream.
    pub(super) async fn create_group(&mut self) -> RedisResult<()> {
        let created =
            self.run(cmd("XGROUP").arg("CREATE").arg(&self.key).arg(&self.group).arg("0").arg("MKSTREAM")).await;
        match created {
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(()),
            created => created.map(drop),
        }
    }

    /// Waits a moment for entries that no consumer has.
    pub(super) async fn read_new(&mut self, count: usize) -> RedisResult<Vec<Entry>> {
        let block = BLOCK.as_millis() as u64;
        let command = self.read_command(count).arg("BLOCK").arg(block).arg("STREAMS").arg(&self.key).arg(">").clone();
        self.run(&command).await.map(reply::read)
    }

    /// Entries behind `after` that this consumer has, and has not acknowledged.
    pub(super) async fn read_own(&mut self, after: &str, count: usize) -> RedisResult<Vec<Entry>> {
        let command = self.read_command(count).arg("STREAMS").arg(&self.key).arg(after).clone();
        self.run(&command).await.map(reply::read)
    }

    /// Entries behind `after`, of which `last` is the last one; from the first one on if there is none.
    pub(super) async fn range(&mut self, after: Option<&str>, last: &str, count: usize) -> RedisResult<Vec<Entry>> {
        let start = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let command = cmd("XRANGE").arg(&self.key).arg(start).arg(last).arg("COUNT").arg(count).clone();
        self.run(&command).await.map(reply::entries)
    }

    /// The id of the newest entry.
    pub(super) async fn last(&mut self) -> RedisResult<String> {
        let newest = self.run(cmd("XREVRANGE").arg(&self.key).arg("+").arg("-").arg("COUNT").arg(1)).await?;
        Ok(reply::entries(newest).pop().map_or_else(|| "0-0".to_owned(), |entry| entry.id))
    }

    /// Waits a moment for entries behind `after`, also those that others read.
    pub(super) async fn read_after(&mut self, after: &str, count: usize) -> RedisResult<Vec<Entry>> {
        let block = BLOCK.as_millis() as u64;
        let command = cmd("XREAD")
            .arg("COUNT")
            .arg(count)
            .arg("BLOCK")
            .arg(block)
            .arg("STREAMS")
            .arg(&self.key)
            .arg(after)
            .clone();
        self.run(&command).await.map(reply::read)
    }

    fn read_command(&self, count: usize) -> Cmd {
        cmd("XREADGROUP").arg("GROUP").arg(&self.group).arg(&self.consumer).arg("COUNT").arg(count).clone()
    }

    /// Takes over entries that other consumers have not acknowledged for `idle`, from `cursor` on.
    pub(super) async fn claim(
        &mut self,
        cursor: &str,
        idle: Duration,
        count: usize,
    ) -> RedisResult<(String, Vec<Entry>, Vec<String>)> {
        let idle = idle.as_millis() as u64;
        let command = cmd("XAUTOCLAIM")
            .arg(&self.key)
            .arg(&self.group)
            .arg(&self.consumer)
            .arg(idle)
            .arg(cursor)
            .arg("COUNT")
            .arg(count)
            .clone();
        self.run(&command).await.map(reply::claimed)
    }

    /// Says that this consumer is still working on these entries.
    pub(super) async fn renew(&mut self, ids: &[String]) -> RedisResult<()> {
        let command =
            cmd("XCLAIM").arg(&self.key).arg(&self.group).arg(&self.consumer).arg(0).arg(ids).arg("JUSTID").clone();
        self.run(&command).await.map(drop)
    }

    pub(super) async fn acknowledge(&mut self, ids: &[String]) -> RedisResult<()> {
        self.run(cmd("XACK").arg(&self.key).arg(&self.group).arg(ids)).await.map(drop)
    }

    pub(super) async fn progress(&mut self) -> RedisResult<Progress> {
        let number = |value: &Value, name: &str| match reply::member(value, name) {
            Some(Value::Int(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        // In this order: what is read in between is not taken for lost.
        let stream = self.run(cmd("XINFO").arg("STREAM").arg(&self.key)).await?;
        let groups = reply::array(self.run(cmd("XINFO").arg("GROUPS").arg(&self.key)).await?);
        let is_ours = |group: &&Value| reply::member(group, "name").map(reply::text).as_ref() == Some(&self.group);
        let group = groups.iter().find(is_ours).unwrap_or(&Value::Nil);
        let first = reply::member(&stream, "first-entry").and_then(|entry| reply::array(entry).into_iter().next());
        let id_of = |reply: &Value, name: &str| reply::member(reply, name).map(id).unwrap_or_default();
        Ok(Progress {
            length: number(&stream, "length").unwrap_or_default(),
            added: number(&stream, "entries-added"),
            read: number(group, "entries-read"),
            first: first.map(id).unwrap_or_default(),
            last: id_of(&stream, "last-generated-id"),
            delivered: id_of(group, "last-delivered-id"),
        })
    }

    async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        command.query_async(&mut self.connection).await
    }
}

fn id(value: Value) -> Id {
    let text = reply::text(value);
    let (time, number) = text.split_once('-').unwrap_or((&text, "0"));
    (time.parse().unwrap_or_default(), number.parse().unwrap_or_default())
}
