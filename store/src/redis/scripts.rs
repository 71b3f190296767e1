//! The scripts that run inside Redis, and how their arguments are laid out.

use std::ops::Range;

use redis::{Script, ScriptInvocation};

use super::names::Names;
use crate::{Batch, Key, Lease, QUEUE_LENGTH_MAX, Rate, UnixMillis, batch::Change, record::kept_expiry};

/// How many expired entries a commit removes beyond twice what it changes.
const SWEEP_SPARE: usize = 64;

/// The scripts with their hashes, and the names that they work on.
pub(super) struct Scripts {
    names: Names,
    commit: Script,
    list: Script,
    page: Script,
    take_token: Script,
    reserve: Script,
    ack: Script,
}

impl Scripts {
    /// Hashes the scripts; they are loaded where they are first missed.
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            commit: Script::new(include_str!("commit.lua")),
            list: Script::new(include_str!("list.lua")),
            page: Script::new(include_str!("page.lua")),
            take_token: Script::new(include_str!("take_token.lua")),
            reserve: Script::new(include_str!("reserve.lua")),
            ack: Script::new(include_str!("ack.lua")),
        }
    }

    /// One commit; `key` is any of the batch, `queues` those that it pushes to.
    pub(super) fn commit(&self, key: &Key, batch: &Batch, queues: &[&Key], now: UnixMillis) -> ScriptInvocation<'_> {
        let mut call = self.commit.prepare_invoke();
        for name in self.names.tag(key).into_iter().chain(queues.iter().flat_map(|queue| self.names.queue(queue))) {
            call.key(name);
        }
        call.arg(now).arg(SWEEP_SPARE + 2 * batch.changes.len()).arg(QUEUE_LENGTH_MAX);
        call.arg(batch.checks.len());
        for check in &batch.checks {
            call.arg(check.key.path()).arg(check.version.map_or_else(String::new, |version| version.0.to_string()));
        }
        call.arg(queues.len());
        for queue in queues {
            call.arg(batch.pushes().filter(|other| other == queue).count());
        }
        for change in &batch.changes {
            add_change(&mut call, change, queues);
        }
        call
    }

    /// One page of a list.
    pub(super) fn list(
        &self,
        prefix: &Key,
        after: Option<&Key>,
        limit: usize,
        now: UnixMillis,
    ) -> ScriptInvocation<'_> {
        let [entries, index, ..] = self.names.tag(prefix);
        let from = match after {
            Some(after) if after >= prefix => format!("({}", after.path()),
            _ => format!("[{}", prefix.path()),
        };
        let mut call = self.list.prepare_invoke();
        call.key(entries).key(index).arg(now).arg(from).arg(end(prefix)).arg(limit);
        call
    }

    /// A part of a list by number.
    pub(super) fn page(&self, prefix: &Key, offset: usize, limit: usize, now: UnixMillis) -> ScriptInvocation<'_> {
        let [entries, index, expiry, _] = self.names.tag(prefix);
        let mut call = self.page.prepare_invoke();
        call.key(entries).key(index).key(expiry);
        call.arg(now).arg(format!("[{}", prefix.path())).arg(end(prefix)).arg(prefix.path()).arg(offset).arg(limit);
        call
    }

    /// A reservation, for as long as `lease` says.
    pub(super) fn reserve(
        &self,
        queue: &Key,
        consumer: &str,
        count: usize,
        lease: Range<UnixMillis>,
    ) -> ScriptInvocation<'_> {
        let [messages, due] = self.names.queue(queue);
        let mut call = self.reserve.prepare_invoke();
        call.key(messages).key(due).arg(lease.start).arg(lease.end).arg(consumer).arg(count);
        call
    }

    /// A token of a bucket.
    pub(super) fn take_token(&self, bucket: &Key, rate: Rate, now: UnixMillis) -> ScriptInvocation<'_> {
        let mut call = self.take_token.prepare_invoke();
        call.key(self.names.bucket(bucket)).arg(now.saturating_mul(1000));
        call.arg(rate.per_micros()).arg(rate.fill_micros());
        call
    }

    /// An acknowledgement.
    pub(super) fn ack(&self, queue: &Key, lease: &Lease) -> ScriptInvocation<'_> {
        let [messages, due] = self.names.queue(queue);
        let mut call = self.ack.prepare_invoke();
        call.key(messages).key(due).arg(format!("{:020}", lease.id)).arg(lease.deliveries).arg(&lease.consumer);
        call
    }
}

/// The queues that a batch pushes to, each once.
pub(super) fn queues(batch: &Batch) -> Vec<&Key> {
    let mut queues: Vec<&Key> = batch.pushes().collect();
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// After everything that starts with a prefix: no path has a byte above 0x7e.
fn end(prefix: &Key) -> String {
    format!("[{}\x7f", prefix.path())
}

fn add_change(call: &mut ScriptInvocation<'_>, change: &Change, queues: &[&Key]) {
    match change {
        Change::Put { key, value, expires } => {
            call.arg("put").arg(key.path()).arg(kept_expiry(*expires)).arg(&value[..]);
        }
        Change::Delete { key } => {
            call.arg("delete").arg(key.path());
        }
        Change::Push { queue, value } => {
            let number = queues.iter().position(|other| *other == queue).map_or(0, |at| at + 1);
            call.arg("push").arg(number).arg(&value[..]);
        }
    }
}
