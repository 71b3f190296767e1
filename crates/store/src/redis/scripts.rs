//! The Lua scripts and their arguments.

use redis::{Script, ScriptInvocation};

use super::names::Names;
use crate::{
    Batch, Key, Rate, Tag, UnixMillis, batch::Change, clock::steadiness::CommitTime, entry::record::stored_expiry,
    usage::entry_bytes,
};

/// Maximum number of expired entries that a commit removes, in addition to two per change.
const SWEEP_SPARE: usize = 64;

pub(super) struct Scripts {
    names: Names,
    commit: Script,
    list: Script,
    page: Script,
    take_tokens: Script,
    usage: Script,
}

impl Scripts {
    /// Hashes the scripts; a server loads each when it is first called.
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            commit: Script::new(include_str!("commit.lua")),
            list: Script::new(include_str!("list.lua")),
            page: Script::new(include_str!("page.lua")),
            take_tokens: Script::new(include_str!("take_tokens.lua")),
            usage: Script::new(include_str!("usage.lua")),
        }
    }

    /// Commits a batch; `key` is any of its keys.
    pub(super) fn commit(&self, key: &Key, batch: &Batch, time: CommitTime) -> ScriptInvocation<'_> {
        let mut call = self.commit.prepare_invoke();
        for name in self.names.tag(key.tag()) {
            call.key(name);
        }
        call.arg(time.now).arg(time.believed).arg(SWEEP_SPARE + 2 * batch.changes.len());
        call.arg(entry_bytes(key.tag().len(), 0));
        call.arg(batch.checks.len());
        for check in &batch.checks {
            call.arg(check.key.path()).arg(check.version.map_or_else(String::new, |version| version.0.to_string()));
        }
        for change in &batch.changes {
            add_change(&mut call, change);
        }
        call
    }

    pub(super) fn list(
        &self,
        prefix: &Key,
        after: Option<&Key>,
        limit: usize,
        now: UnixMillis,
    ) -> ScriptInvocation<'_> {
        let [entries, index, ..] = self.names.tag(prefix.tag());
        let from = match after {
            Some(after) if after >= prefix => format!("({}", after.path()),
            _ => format!("[{}", prefix.path()),
        };
        let mut call = self.list.prepare_invoke();
        call.key(entries).key(index).arg(now).arg(from).arg(end(prefix)).arg(limit);
        call
    }

    /// Lists entries from a position on.
    pub(super) fn page(&self, prefix: &Key, offset: usize, limit: usize, now: UnixMillis) -> ScriptInvocation<'_> {
        let [entries, index, expiry, ..] = self.names.tag(prefix.tag());
        let mut call = self.page.prepare_invoke();
        call.key(entries).key(index).key(expiry);
        call.arg(now).arg(format!("[{}", prefix.path())).arg(end(prefix)).arg(prefix.path()).arg(offset).arg(limit);
        call
    }

    /// Returns a call that measures the size of a tag in bytes.
    pub(super) fn usage(&self, tag: &Tag) -> ScriptInvocation<'_> {
        let [entries, index, _, version, bytes] = self.names.tag(tag.as_str());
        let mut call = self.usage.prepare_invoke();
        call.key(entries).key(index).key(version).key(bytes).arg(entry_bytes(tag.as_str().len(), 0));
        call
    }

    pub(super) fn take_tokens(&self, bucket: &Key, rate: Rate, wanted: u32, now: UnixMillis) -> ScriptInvocation<'_> {
        let mut call = self.take_tokens.prepare_invoke();
        call.key(self.names.bucket(bucket)).arg(now.saturating_mul(1000));
        call.arg(rate.per_micros()).arg(rate.fill_micros()).arg(wanted);
        call
    }
}

/// The upper bound of a prefix: no path has a byte above 0x7e.
fn end(prefix: &Key) -> String {
    format!("[{}\x7f", prefix.path())
}

fn add_change(call: &mut ScriptInvocation<'_>, change: &Change) {
    match change {
        Change::Put { key, value, expires } => {
            call.arg("put").arg(key.path()).arg(stored_expiry(*expires)).arg(&value[..]);
        }
        Change::Delete { key } => {
            call.arg("delete").arg(key.path());
        }
    }
}
