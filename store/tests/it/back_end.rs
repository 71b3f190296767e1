//! The back ends, each fresh, with a clock that is moved by hand.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use airlock_store::{Clock, Embedded, Redis, RedisSettings, Shared, Store, shared};
use tempfile::TempDir;
use tokio::net::UnixListener;

/// How often a port that somebody else took meanwhile is replaced.
const PORT_TRIES: usize = 5;

/// A store to test, and all that must live as long as it.
pub(crate) struct BackEnd {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Time,
    _server: Option<Server>,
    _folder: Option<TempDir>,
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct Time(Arc<AtomicU64>);

/// A redis-server that ends when it is dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_700_000_000_000)))
    }

    pub(crate) fn clock(&self) -> Clock {
        let now = Arc::clone(&self.0);
        Clock::new(move || now.load(Ordering::SeqCst))
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn pass(&self, duration: Duration) {
        self.0.fetch_add(duration.as_millis() as u64, Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, duration: Duration) {
        self.0.fetch_sub(duration.as_millis() as u64, Ordering::SeqCst);
    }
}

impl BackEnd {
    pub(crate) fn file() -> Self {
        let (time, folder) = (Time::new(), tempfile::tempdir().unwrap());
        let store = Embedded::open(&folder.path().join("store.redb"), time.clock()).unwrap();
        Self { store: Arc::new(store), time, _server: None, _folder: Some(folder) }
    }

    pub(crate) fn memory() -> Self {
        let time = Time::new();
        let store = Embedded::in_memory(time.clock()).unwrap();
        Self { store: Arc::new(store), time, _server: None, _folder: None }
    }

    /// A file that is asked over a socket, in this process as from another.
    pub(crate) async fn shared() -> Self {
        let mut file = Self::file();
        let path = file._folder.as_ref().unwrap().path().join("socket");
        tokio::spawn(shared::serve(
            UnixListener::bind(&path).unwrap(),
            Arc::clone(&file.store),
            std::future::pending(),
        ));
        file.store = Arc::new(Shared::connect(&path).await.unwrap());
        file
    }

    /// None when there is no redis-server here and nobody requires one.
    pub(crate) async fn redis(cluster: bool) -> Option<Self> {
        let (time, server) = (Time::new(), Server::start(cluster).await?);
        let store = Redis::connect(&server.settings(cluster), time.clock()).await.unwrap();
        Some(Self { store: Arc::new(store), time, _server: Some(server), _folder: None })
    }
}

impl Server {
    pub(crate) async fn start(cluster: bool) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
            assert!(!required, "redis-server is missing: install it, on Debian by `apt-get install redis-server`");
            // Written past the capture of the test runner, which hides what a passing test prints.
            std::io::stderr().write_all(b"skipped: redis-server is missing; install it to test on Redis\n").unwrap();
            return None;
        }
        let server = (0..PORT_TRIES).find_map(|_| Self::try_start(cluster)).expect("redis-server did not start");
        if cluster {
            server.own_all_slots().await;
        }
        Some(server)
    }

    pub(crate) fn settings(&self, cluster: bool) -> RedisSettings {
        RedisSettings { urls: vec![self.url()], cluster, ..RedisSettings::default() }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// None when the server ended before it was ready, as it does when its port is taken.
    fn try_start(cluster: bool) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // The bus of a cluster listens 10000 above.
        let port = if cluster && port > 55_000 { port - 20_000 } else { port };
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(folder.path());
        if cluster {
            command.args(["--cluster-enabled", "yes"]);
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
        let server = Self { process, port, _folder: folder };
        ready.then_some(server)
    }

    async fn own_all_slots(&self) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("ADDSLOTSRANGE").arg(0).arg(16383).exec_async(&mut connection).await.unwrap();
        let mut poll = tokio::time::interval(Duration::from_millis(10));
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await.unwrap();
            if info.contains("cluster_state:ok") {
                return;
            }
            poll.tick().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
