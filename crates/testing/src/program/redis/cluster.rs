//! A Redis Cluster of several nodes that runs as long as its test.

use std::process::{Command, Stdio};

use super::{RedisProcess, wait};

/// Number of nodes with slots.
const PRIMARIES: usize = 3;
/// Time after which the others take a node for dead, in milliseconds.
const NODE_TIMEOUT_MS: &str = "3000";

/// Three nodes with slots, and perhaps a replica of each.
pub struct RedisCluster {
    nodes: Vec<RedisProcess>,
}

impl RedisCluster {
    /// Starts three nodes that share the slots; `None` when the test is skipped.
    pub fn start() -> Option<Self> {
        Self::start_with(0)
    }

    /// Starts three nodes, and a replica of each.
    pub fn start_replicated() -> Option<Self> {
        Self::start_with(1)
    }

    fn start_with(replicas: usize) -> Option<Self> {
        let mut version = Command::new("redis-cli");
        if !crate::programs_may_run() || version.arg("--version").stdout(Stdio::null()).status().is_err() {
            crate::skip("redis-cli is missing", "install it, on Debian by `apt-get install redis-tools`");
            return None;
        }
        let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT_MS];
        let options = [&options[..], &["--repl-diskless-sync-delay", "0"]].concat();
        let start = |_| RedisProcess::start_with(&options);
        let nodes: Vec<RedisProcess> = (0..PRIMARIES * (1 + replicas)).map(start).collect::<Option<_>>()?;
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]).args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port.number())));
        create.args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]).stdout(Stdio::null());
        assert!(create.status().unwrap().success());
        let cluster = Self { nodes };
        wait(|| cluster.nodes.iter().all(|node| node.command("CLUSTER INFO").contains("cluster_state:ok")));
        wait(|| replicas == 0 || cluster.nodes.iter().all(has_replica));
        Some(cluster)
    }

    /// The addresses of all nodes, as settings take them.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisProcess::url).collect()
    }

    /// Kills one of the nodes that had slots at the start; its replica gets them.
    pub fn kill_primary(&mut self) {
        self.nodes[0].stop();
    }

    /// Waits until a replica has taken over from the killed node, which then starts as its replica.
    pub fn restart_after_failover(&mut self) {
        let is_over = || self.nodes[PRIMARIES..].iter().any(RedisProcess::is_primary);
        wait(is_over);
        self.nodes[0].start_again();
    }

    /// Suspends the replicas.
    pub fn freeze_replicas(&self) {
        self.nodes[PRIMARIES..].iter().for_each(RedisProcess::freeze);
    }

    /// Resumes the replicas.
    pub fn thaw_replicas(&self) {
        self.nodes[PRIMARIES..].iter().for_each(RedisProcess::thaw);
    }
}

/// Returns true if a node is a replica that is up to date, or has one.
fn has_replica(node: &RedisProcess) -> bool {
    let replication = node.command("INFO replication");
    replication.contains("master_link_status:up") || replication.contains("state=online")
}
