//! Row 9: uplinks with a thousand fields, each of which is a message to 200 stored sessions.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::hoarder;
use crate::{
    attack::Attack,
    mqtt::{self, Client},
};

const SESSIONS: usize = 200;
const EXPIRY_S: u32 = 3600;
const DECODER: &str = "function Decoder() { var f = {}; for (var i = 0; i < 1000; i++) f['f' + i] = i; return f; }";

pub(crate) const ATTACK: Attack = Attack::new(9, "1,000 fields to 200 stored sessions", |server| {
    Box::pin(async {
        let functions = json!({ "payload_format": "custom", "decoder": DECODER });
        let applications = hoarder::applications(server, 1, &functions).await;
        for number in 0..SESSIONS {
            let (id, application) = (format!("session-{number}"), &applications[0]);
            let connect = mqtt::connect(5, &id, &application.id, &application.key, EXPIRY_S);
            let mut client = Client::connect(server.mqtt, 1, &connect).await.unwrap();
            client.stream.write_all(&mqtt::subscribe("+/devices/+/up/#")).await.unwrap();
            assert_eq!(client.packet().await.unwrap().0, 0x90);
        }
        hoarder::uplinks(server, &applications, 4).attacker()
    })
});
