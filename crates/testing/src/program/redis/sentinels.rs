//! A Redis server with replicas, of which sentinels choose the primary, for as long as the test runs.

use std::{fs, process::Command};

use super::{RedisProcess, TRIES_MAX, wait, wait_for_line};
use crate::program::port::Port;

/// Number of sentinels; two must agree.
const SENTINELS: usize = 3;
/// The name by which they know the primary.
const PRIMARY: &str = "airlock";

/// A primary, its replicas, and their sentinels.
pub struct RedisSentinels {
    servers: Vec<RedisProcess>,
    sentinels: Vec<RedisProcess>,
}

impl RedisSentinels {
    /// Starts a primary with so many replicas; `None` when the test is skipped.
    pub fn start(replicas: usize) -> Option<Self> {
        let primary = RedisProcess::start()?;
        let port = primary.port.number().to_string();
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let options = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
            servers.push(RedisProcess::start_with(&options)?);
        }
        let online = format!("connected_slaves:{replicas}\r\n");
        wait(|| {
            let replication = servers[0].command("INFO replication");
            replication.contains(&online) && replication.matches("state=online").count() == replicas
        });
        let sentinels = (0..SENTINELS).map(|_| start_sentinel(&port)).collect();
        let started = Self { servers, sentinels };
        let (quorum, replicas) = (format!("OK {SENTINELS} usable"), format!("\r\n${}\r\n", "num-slaves".len()));
        for sentinel in &started.sentinels {
            wait(|| sentinel.command(&format!("SENTINEL CKQUORUM {PRIMARY}")).contains(&quorum));
            wait(|| {
                let known = sentinel.command(&format!("SENTINEL MASTER {PRIMARY}"));
                let count = format!("{replicas}num-slaves\r\n$1\r\n{}\r\n", started.servers.len() - 1);
                known.contains(&count)
            });
        }
        Some(started)
    }

    /// The addresses of the sentinels, as settings take them.
    pub fn urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisProcess::url).collect()
    }

    /// The address of the primary, as settings take it: its name stands for the host.
    pub fn primary_url(&self) -> String {
        format!("redis://{PRIMARY}")
    }

    /// Kills the server that was the primary at the start; a replica takes over.
    pub fn kill_primary(&mut self) {
        self.servers[0].stop();
    }

    /// Waits until a replica has taken over from the killed server, which then starts as its replica.
    pub fn restart_after_failover(&mut self) {
        wait(|| self.servers[1..].iter().any(RedisProcess::is_primary));
        self.servers[0].start_again();
    }

    /// Suspends the server that was the primary at the start; a replica takes over.
    pub fn freeze_primary(&self) {
        self.servers[0].freeze();
    }

    /// Resumes the server that was the primary; it still takes itself for that, until the sentinels say otherwise.
    pub fn thaw_primary(&self) {
        self.servers[0].thaw();
    }

    /// Suspends the replicas.
    pub fn freeze_replicas(&self) {
        self.servers[1..].iter().for_each(RedisProcess::freeze);
    }

    /// Resumes the replicas.
    pub fn thaw_replicas(&self) {
        self.servers[1..].iter().for_each(RedisProcess::thaw);
    }

    /// Suspends the sentinel that settings list first.
    pub fn freeze_sentinel(&self) {
        self.sentinels[0].freeze();
    }

    /// Kills one sentinel.
    pub fn kill_sentinel(&mut self) {
        self.sentinels[0].stop();
    }
}

fn start_sentinel(primary_port: &str) -> RedisProcess {
    let try_start = |_| {
        let (port, dir) = (Port::free(), tempfile::tempdir().unwrap());
        let file = dir.path().join("sentinel.conf");
        let lines = format!(
            "port {}\nbind 127.0.0.1\ndir {}\nsentinel monitor {PRIMARY} 127.0.0.1 {primary_port} 2\n\
             sentinel down-after-milliseconds {PRIMARY} 3000\nsentinel failover-timeout {PRIMARY} 5000\n",
            port.number(),
            dir.path().display()
        );
        fs::write(&file, lines).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(file).arg("--sentinel");
        Some(RedisProcess { child: wait_for_line(command, "+monitor master")?, port, dir, options: Vec::new() })
    };
    (0..TRIES_MAX).find_map(try_start).expect("redis-server did not start as a sentinel")
}
