//! Row 20: one tenant reads the largest list that it can over and over.

use serde_json::json;

use super::hoarder;
use crate::{
    attack::Attack,
    requests::{Requests, request},
    server_process::ServerProcess,
};

const CONNECTIONS: usize = 64;
/// Together some 450 kB.
const DEVICES: u64 = 1000;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "lists of 1,000 devices, 64 at once", |server| {
        Box::pin(async {
            let authorization = prepare(server, "in the cellar of the house").await;
            let list = move |_| request("GET", "/applications/lists/devices", &authorization, "");
            Requests::new(server.handler, CONNECTIONS, list).attacker()
        })
    })
};

/// Registers the devices of the application `lists`; returns what authorizes its owner.
pub(crate) async fn prepare(server: &ServerProcess, description: &str) -> String {
    let application = server.create_application("lists", ServerProcess::demo_functions()).await;
    let authorization = hoarder::authorization(&application);
    let add = {
        let (authorization, description) = (authorization.clone(), description.to_owned());
        move |number: u64| {
            let path = format!("/applications/lists/devices/dev-{number}");
            let lorawan = json!({
                "app_id": "lists", "dev_id": format!("dev-{number}"), "activation_constraints": "local",
                "app_eui": "70B3D57EF0000000", "dev_eui": format!("{number:016X}"),
                "dev_addr": format!("{number:08X}"), "app_key": "00112233445566778899AABBCCDDEEFF",
                "nwk_s_key": "00112233445566778899AABBCCDDEEFF", "app_s_key": "00112233445566778899AABBCCDDEEFF",
            });
            let body = json!({ "lorawan_device": lorawan, "description": description });
            request("PUT", &path, &authorization, &body.to_string())
        }
    };
    Requests::new(server.handler, 16, add).run_times(DEVICES).await;
    authorization
}
