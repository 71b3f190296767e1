//! Ways of messages to applications, and the clients that take them.

mod data_client;
pub(crate) mod external_broker;
mod mqtt_access;
mod mqtt_sessions;
mod outputs;
pub(crate) mod third_party_clients;
pub(crate) mod webhooks;
