//! Row 1: many webhooks to a port where nobody listens, and large uplinks, on a small disk.

use serde_json::json;

use super::hoarder;
use crate::attack::{Attack, LOOSE};

const APPLICATIONS: usize = 16;
/// Returns as much as it may, some 16 KB.
const DECODER: &str = "function Decoder() { return { text: Array(16300).join('x') }; }";

pub(crate) const ATTACK: Attack = Attack {
    settings: LOOSE,
    disk_bytes: Some(512 << 20),
    ..Attack::new(1, "webhooks to a dead port, a disk of 512 MiB", |server| {
        Box::pin(async {
            let functions = json!({ "payload_format": "custom", "decoder": DECODER });
            let applications = hoarder::applications(server, APPLICATIONS, &functions).await;
            hoarder::add_webhooks(server, &applications, |_, _| "http://127.0.0.1:9/".to_owned()).await;
            hoarder::uplinks(server, &applications, 32).attacker()
        })
    })
};
