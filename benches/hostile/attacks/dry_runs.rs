//! Row 20: one tenant dry-runs large functions, each of which is new and so has to be evaluated.

use serde_json::json;

use crate::{
    attack::Attack,
    requests::{Requests, request},
    server_process::ServerProcess,
};

const CONNECTIONS: usize = 64;
const SOURCE_BYTES: usize = 110_000;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "dry runs of 110 kB of source, 64 at once", |server| {
        Box::pin(async {
            let application = server.create_application("dry-runs", ServerProcess::demo_functions()).await;
            let (token, source) = (format!("Bearer {}", application.token.expose()), source());
            let dry_run = move |number| {
                let decoder = format!("var run = {number};\n{source}");
                let app = json!({ "app_id": "dry-runs", "payload_format": "custom", "decoder": decoder });
                let body = json!({ "app": app, "port": 1, "payload": "AZqooA==" });
                request("POST", "/applications/dry-runs/dry-uplink", &token, &body.to_string())
            };
            Requests::new(server.handler, CONNECTIONS, dry_run).attacker()
        })
    })
};

/// Functions as a code generator writes them.
fn source() -> String {
    let mut source = String::from("function Decoder(bytes) { return { value: field0(bytes) }; }\n");
    for number in 0.. {
        if source.len() > SOURCE_BYTES {
            break;
        }
        source += &format!(
            "function field{number}(bytes) {{ var value = bytes[{number} % 4] << 8 | bytes[1]; \
             return value > 32767 ? value - 65536 : value; }}\n"
        );
    }
    source
}
