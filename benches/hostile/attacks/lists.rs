//! Row 20: one tenant reads the largest list that it can over and over.

use serde_json::json;

use super::hoarder;
use crate::{
    attack::Attack,
    requests::{Requests, request},
    server_process::ServerProcess,
};

const CONNECTIONS: usize = 64;
const ID: &str = "lists";
/// Together some 450 kB.
const DEVICES: u64 = 1000;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "lists of 1,000 devices, 64 at once", |server| {
        Box::pin(async {
            let authorization = prepare(server, ID, "in the cellar of the house").await;
            let next = move |_| list(ID, &authorization);
            Requests::new(server.handler, CONNECTIONS, next).attacker()
        })
    })
};

/// A request for all devices of an application.
pub(super) fn list(id: &str, authorization: &str) -> Vec<u8> {
    request("GET", &format!("/applications/{id}/devices"), authorization, "")
}

/// Registers a user, an application and its devices; returns what authorizes the user.
pub(super) async fn prepare(server: &ServerProcess, id: &'static str, description: &str) -> String {
    let application = server.create_application(id, ServerProcess::demo_functions()).await;
    let authorization = hoarder::authorization(&application);
    // Several users may have such devices, but not the same EUIs.
    let app_eui = format!("{:016X}", id.bytes().fold(0_u64, |sum, byte| (sum << 8) | u64::from(byte)));
    let add = {
        let (authorization, description) = (authorization.clone(), description.to_owned());
        move |number: u64| {
            let path = format!("/applications/{id}/devices/dev-{number}");
            let lorawan = json!({
                "app_id": id, "dev_id": format!("dev-{number}"), "activation_constraints": "local",
                "app_eui": app_eui, "dev_eui": format!("{number:016X}"),
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
