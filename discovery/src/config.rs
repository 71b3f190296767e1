//! What an operator may set about discovery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where gRPC and HTTP are served; the port that v2 clients know for gRPC.
    pub grpc_listen: String,
    /// Where the same is served on the port that v2 clients know for HTTP.
    pub http_listen: String,
    /// The account services whose components may announce themselves; when empty, every one that is trusted.
    pub announce_issuers: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grpc_listen: "127.0.0.1:1900".to_owned(),
            http_listen: "127.0.0.1:8080".to_owned(),
            announce_issuers: Vec::new(),
        }
    }
}
