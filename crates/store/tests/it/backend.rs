//! A fresh store of every kind, with a manual clock.

use std::{any::Any, sync::Arc};

use airlock_store::{Embedded, Redis, RedisSettings, SocketStore, Store, socket};
use tempfile::TempDir;
use testing::{ManualClock, RedisCluster, RedisProcess, RedisSentinels};
use tokio::net::UnixListener;

/// A store to test, and what must live as long as it.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    _server: Option<Box<dyn Any>>,
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

    /// `None` when Redis is missing and the test is skipped.
    pub(crate) async fn redis() -> Option<Self> {
        let server = RedisProcess::start()?;
        Some(Self::connect(&settings(&server, false), server).await)
    }

    /// A cluster of three nodes.
    pub(crate) async fn cluster() -> Option<Self> {
        let cluster = RedisCluster::start()?;
        Some(Self::connect(&of_cluster(&cluster), cluster).await)
    }

    /// A primary behind sentinels, with a replica that confirms all commits.
    pub(crate) async fn sentinels() -> Option<Self> {
        let sentinels = RedisSentinels::start(1)?;
        Some(Self::connect(&RedisSettings { confirming_replicas: 1, ..behind(&sentinels) }, sentinels).await)
    }

    async fn connect(settings: &RedisSettings, server: impl Any) -> Self {
        let clock = ManualClock::new();
        let store = Redis::connect(settings, clock.for_store()).await.unwrap();
        Self { store: Arc::new(store), clock, _server: Some(Box::new(server)), _dir: None }
    }
}

pub(crate) fn settings(server: &RedisProcess, cluster: bool) -> RedisSettings {
    RedisSettings { urls: vec![server.url()], cluster, ..RedisSettings::default() }
}

pub(crate) fn of_cluster(cluster: &RedisCluster) -> RedisSettings {
    RedisSettings { urls: cluster.urls(), cluster: true, ..RedisSettings::default() }
}

pub(crate) fn behind(sentinels: &RedisSentinels) -> RedisSettings {
    RedisSettings { urls: vec![sentinels.primary_url()], sentinels: sentinels.urls(), ..RedisSettings::default() }
}
