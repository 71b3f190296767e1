//! Detects that the store went back, for example because a backup was restored.
//!
//! Each instance has a counter in the store, and a copy of it in a file outside the store. The counter grows at every
//! start and stop, after every audited change, and at intervals. So a store whose counter is below that of the file is
//! older than what the instance has seen, and contains what was deleted since. Instances that share a store have a
//! counter each: one that starts on an older store first cannot hide that from the others. A Redis can go back while it
//! is in use, so the counters are also compared all the time.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Key, Store, Tag, Version};
use tokio::time::{Instant, sleep, timeout};
use types::{Kind, Kinded, Random};

use crate::{audit::AuditLog, error::status::ErrorChain, secrets::private_file::write_private};

/// Interval at which the counter grows without a change.
const INTERVAL: Duration = Duration::from_secs(300);
/// Interval between comparisons of the counters: as long as a response of the account service counts as fresh.
const COMPARE_INTERVAL: Duration = Duration::from_secs(2);
/// Delay of the file for a store that may lose the last second: the store must not look older than it was.
const SETTLE: Duration = Duration::from_secs(2);
/// Maximum number of attempts when another process of the same data directory conflicts.
const TRIES_MAX: usize = 20;

/// The counter of this instance.
pub struct StoreMark {
    path: PathBuf,
    instance: String,
    store: Arc<dyn Store>,
    older: OlderStore,
    settle: Duration,
}

/// Ways to deal with a store that went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderStore {
    /// Fail.
    Refuse,
    /// Go on with it.
    Accept,
}

/// Acknowledged changes that a store may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    Full,
    /// The last second, when its machine fails.
    LosesLastSecond,
}

/// Reasons why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreMarkError {
    /// The store went back.
    #[error(
        "the store is older than this data directory remembers, or another one: its mark is {found}, not {expected}. If it \
         was restored from a backup, or lost what it had acknowledged, access keys, collaborators, users and logins that \
         were deleted since then are valid again, and later changes are lost. To use it, start once with \
         --accept-older-store and delete what should not exist; otherwise put the newer store back. If the store did not \
         go back, delete {} and start again",
        path.display()
    )]
    Older {
        /// The counter in the store.
        found: u64,
        /// The counter in the file.
        expected: u64,
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cannot {action} {}: make it readable and writable for this user", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged, so it is unknown whether the store went back: delete it and start again if no backup was restored",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Other processes kept changing the counter.
    #[error("the mark in the store is being changed by others: try again later")]
    Contended,
    /// The store failed, or has something else where the counter should be.
    #[error("cannot use the mark in the store")]
    Store(#[from] store::Error),
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    instance: String,
    count: u64,
}

impl StoreMark {
    /// Reads the file and compares it with the store. Without a file, the instance is new.
    pub async fn open(
        path: &Path,
        (store, durability): (Arc<dyn Store>, Durability),
        random: &dyn Random,
        older: OlderStore,
    ) -> Result<Self, StoreMarkError> {
        let saved = read(path)?;
        let instance = saved.as_ref().map_or_else(|| new_instance(random), |saved| saved.instance.clone());
        let settle = if durability == Durability::Full { Duration::ZERO } else { SETTLE };
        let mark = Self { path: path.to_owned(), instance, store, older, settle };
        let (found, expected) = mark.counts().await?;
        mark.check(found, expected)?;
        if found < expected {
            tracing::warn!(found, expected, "using an older store: delete what should not exist any more");
        }
        Ok(mark)
    }

    /// Advances the counter in the store and then in the file: at the start, at the end, and when an older store is
    /// accepted.
    pub async fn advance(&self) -> Result<(), StoreMarkError> {
        let count = self.advance_store().await?;
        self.save(count)
    }

    /// Like [`StoreMark::advance`], for the start: a file that cannot be written, as on a full disk, is only logged.
    pub async fn start(&self) -> Result<(), StoreMarkError> {
        match self.advance().await {
            Err(error @ StoreMarkError::File { .. }) => {
                warn_unmarked(&error);
                Ok(())
            }
            advanced => advanced,
        }
    }

    /// Advances the counter after audited changes and at intervals, and compares it in between. Returns when the store
    /// went back, after which nothing should use it.
    pub async fn run(&self, audit: AuditLog) -> StoreMarkError {
        let (mut due, mut is_failing) = (Instant::now() + INTERVAL, false);
        loop {
            if timeout(COMPARE_INTERVAL, audit.changed()).await.is_ok() {
                due = Instant::now();
            }
            let is_due = due <= Instant::now();
            let outcome = if is_due { self.advance_settled().await } else { self.compare().await };
            match outcome {
                Ok(()) if is_due => (due, is_failing) = (Instant::now() + INTERVAL, false),
                Ok(()) => {}
                Err(error @ StoreMarkError::Older { .. }) => return error,
                Err(error) if is_failing => tracing::debug!(error = %ErrorChain(&error), "cannot mark the store"),
                Err(error) => {
                    is_failing = true;
                    warn_unmarked(&error);
                }
            }
        }
    }

    async fn advance_settled(&self) -> Result<(), StoreMarkError> {
        let count = self.advance_store().await?;
        sleep(self.settle).await;
        self.save(count)
    }

    async fn compare(&self) -> Result<(), StoreMarkError> {
        let (found, expected) = self.counts().await?;
        self.check(found, expected)
    }

    /// The counts in the store and in the file.
    async fn counts(&self) -> Result<(u64, u64), StoreMarkError> {
        // The file first: it never gets ahead of the store.
        let expected = self.expected()?;
        let (found, _) = self.read_store().await?;
        Ok((found, expected))
    }

    /// Fails if the store went back and that is not accepted.
    fn check(&self, found: u64, expected: u64) -> Result<(), StoreMarkError> {
        match self.older {
            OlderStore::Refuse if found < expected => {
                Err(StoreMarkError::Older { found, expected, path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The count in the file, if it is this instance's.
    fn expected(&self) -> Result<u64, StoreMarkError> {
        let saved = read(&self.path)?.filter(|saved| saved.instance == self.instance);
        Ok(saved.map_or(0, |saved| saved.count))
    }

    async fn advance_store(&self) -> Result<u64, StoreMarkError> {
        let expected = self.expected()?;
        for _ in 0..TRIES_MAX {
            let (found, version) = self.read_store().await?;
            self.check(found, expected)?;
            let count = found.max(expected).saturating_add(1);
            if self.write_store(count, version).await? == Commit::Done {
                return Ok(count);
            }
        }
        Err(StoreMarkError::Contended)
    }

    async fn read_store(&self) -> Result<(u64, Option<Version>), StoreMarkError> {
        let found = self.store.get(&[self.key()?]).await?.into_iter().next().flatten();
        let count = |entry: &store::Entry| std::str::from_utf8(&entry.value).ok()?.parse().ok();
        // Whatever else is there, it is not what this instance wrote.
        Ok((found.as_ref().and_then(count).unwrap_or(0), found.map(|entry| entry.version)))
    }

    async fn write_store(&self, count: u64, version: Option<Version>) -> Result<Commit, StoreMarkError> {
        let key = self.key()?;
        let unchanged = match version {
            Some(version) => Batch::new().expect(key.clone(), version),
            None => Batch::new().expect_absent(key.clone()),
        };
        // It never expires: by a clock that is wrong, or after a long time without a start, the store would look older.
        Ok(self.store.commit(unchanged.put(key, count.to_string())).await?)
    }

    fn save(&self, count: u64) -> Result<(), StoreMarkError> {
        // A command of the operator may have advanced it in between.
        if self.expected()? >= count {
            return Ok(());
        }
        let text = serde_json::json!({ "instance": self.instance, "count": count }).to_string();
        let failed = |source| StoreMarkError::File { action: "write", path: self.path.clone(), source };
        write_private(&self.path, text.as_bytes()).map_err(failed)
    }

    fn key(&self) -> Result<Key, StoreMarkError> {
        Ok(Key::new(&Tag::named("mark", &self.instance)?, "count")?)
    }
}

impl Kinded for StoreMarkError {
    fn kind(&self) -> Kind {
        match self {
            Self::Older { .. } | Self::Damaged { .. } => Kind::Invalid,
            Self::File { .. } | Self::Contended | Self::Store(_) => Kind::Unavailable,
        }
    }
}

fn read(path: &Path) -> Result<Option<Saved>, StoreMarkError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StoreMarkError::File { action: "read", path: path.to_owned(), source }),
    };
    serde_json::from_slice(&text).map(Some).map_err(|_| StoreMarkError::Damaged { path: path.to_owned() })
}

fn warn_unmarked(error: &StoreMarkError) {
    let error = ErrorChain(error);
    tracing::warn!(%error, "cannot mark the store: trying again; until this succeeds, an older store is not noticed");
}

fn new_instance(random: &dyn Random) -> String {
    format!("{:016x}", u64::from_be_bytes(random.array()))
}
