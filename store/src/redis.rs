//! The store that several processes share: one Redis, or a Redis Cluster.
