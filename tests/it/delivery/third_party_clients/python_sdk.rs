//! The Python client of The Things Network v2, from PyPI.

use std::{path::Path, process::Output, sync::OnceLock};

use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use serde_json::json;
use testing::Python;
use types::{AccessKey, ApplicationRight};

use crate::harness::{Network, Owner, next, printed, remove_time};

pub(crate) const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/delivery/third_party_clients");

/// A Python with the client; none where it cannot be installed.
pub(crate) fn python() -> Option<&'static Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let packages: Vec<&str> = include_str!("sdk.txt").lines().filter(|line| !line.starts_with('#')).collect();
    PYTHON.get_or_init(|| Python::install(&dir, &packages)).as_ref()
}

pub(crate) async fn full_key(network: &Network, owner: &Owner) -> AccessKey {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    use ApplicationRight::{Delete, Devices, MessagesDownWrite, MessagesUpRead, MessagesUpWrite, Settings};
    let rights = vec![Settings, Delete, Devices, MessagesUpRead, MessagesUpWrite, MessagesDownWrite];
    let new = NewAccessKey { name: "script".to_owned(), rights };
    account.add_access_key(&owner.token, &owner.app_id, &new).await.unwrap().key.unwrap()
}

/// Runs a program while the services keep running.
pub(crate) async fn run(python: &Python, program: &str, environment: Vec<(&'static str, String)>) -> Output {
    let mut command = python.command(&Path::new(PROGRAMS).join(program));
    command.envs(environment);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

// Conformance: `app_id`, the four functions, `payload_format` stored verbatim
// Conformance: Register, get, set, delete over gRPC and HTTP
// Conformance: Every field, in gRPC and JSON
// Conformance: `port`, `confirmed`, `schedule`, `payload_raw`, `payload_fields`
// Conformance: DryUplink, DryDownlink, SimulateUplink over gRPC and HTTP
// Conformance: Plain text for every client that supports it
#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_of_v2_works_unmodified() {
    let Some(python) = python() else { return };
    let network = Network::start().await;
    let tls = network.stack.settings().client.discovery_address.clone();
    let plain = network.stack.discovery_http_address().unwrap().to_string();
    for (name, discovery, is_plain) in [("secure", tls, "no"), ("plain", plain, "yes")] {
        let owner = network.owner(name).await;
        let key = full_key(&network, &owner).await;
        let mut listener = owner.listen(&network).await;
        let roots = network.dir.path().join("ca.cert").display().to_string();
        let environment = vec![
            ("DISCOVERY", discovery),
            ("PLAIN", is_plain.to_owned()),
            ("APP_ID", owner.app_id.to_string()),
            ("ACCESS_KEY", String::from(key)),
            ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", roots),
        ];
        let output = run(python, "sdk.py", environment).await;
        assert!(printed(&output).ends_with("done\n"));
        let downlink = loop {
            let (topic, message) = next(&mut listener).await;
            if topic == "dev-1/down" {
                break message;
            }
        };
        let expected = json!({
            "port": 2, "confirmed": true, "schedule": "replace", "payload_fields": {"led": 1},
        });
        assert_eq!(downlink, expected);
        let (topic, mut event) = loop {
            let (topic, event) = next(&mut listener).await;
            if topic.starts_with("dev-1/events/down") {
                break (topic, event);
            }
        };
        assert!(remove_time(&mut event), "{event}");
        let scheduled = json!({"message": {"port": 2, "confirmed": true, "payload_fields": {"led": 1}}});
        assert_eq!((topic.as_str(), event), ("dev-1/events/down/scheduled", scheduled));
    }
    network.stack.stop().await;
}
