//! A fresh store of every kind, with a manual clock.

use std::sync::Arc;

use airlock_store::{Embedded, Redis, RedisSettings, SocketStore, Store, socket};
use tempfile::TempDir;
use testing::{ManualClock, RedisProcess};
use tokio::net::UnixListener;

/// A store to test, and what must live as long as it.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    _server: Option<RedisProcess>,
    _dir: Option<TempDir>,
}

impl Backend {
    pub(crate) fn file() -> Self {
        let (clock, dir) = (ManualClock::new(), tempfile::tempdir().unwrap());
        let store = Embedded::open(&dir.path().join("store.redb"), clock.for_store()).unwrap();
        Self { store: Arc::new(store), clock, _server: None, _dir: Some(dir) }
    }

    pub(crate) fn memory() -> Self {
        let clock = ManualClock::new();
        let store = Embedded::in_memory(clock.for_store()).unwrap();
        Self { store: Arc::new(store), clock, _server: None, _dir: None }
    }

    pub(crate) async fn socket() -> Self {
        let mut file = Self::file();
        let path = file._dir.as_ref().unwrap().path().join("socket");
        tokio::spawn(socket::serve(
            UnixListener::bind(&path).unwrap(),
            Arc::clone(&file.store),
            std::future::pending(),
        ));
        file.store = Arc::new(SocketStore::connect(&path).await.unwrap());
        file
    }

    /// None when Redis is missing and the test is skipped.
    pub(crate) async fn redis(cluster: bool) -> Option<Self> {
        let (clock, server) =
            (ManualClock::new(), if cluster { RedisProcess::start_cluster() } else { RedisProcess::start() }?);
        let store = Redis::connect(&settings(&server, cluster), clock.for_store()).await.unwrap();
        Some(Self { store: Arc::new(store), clock, _server: Some(server), _dir: None })
    }
}

pub(crate) fn settings(server: &RedisProcess, cluster: bool) -> RedisSettings {
    RedisSettings { urls: vec![server.url()], cluster, ..RedisSettings::default() }
}
