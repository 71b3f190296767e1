//! The Python client of The Things Network v2, from the registry that people take it from.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use serde_json::json;
use types::{AccessKey, ApplicationRight};

use crate::harness::{Network, Owner, next, printed};

/// The folder with strangers' programs.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/third_party_clients");

/// A Python with what the programs need; none where it cannot be installed and nobody insists on it.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(|| install(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("python"))).as_deref()
}

/// Every run asks for the packages again, which takes a second when they are there.
fn install(folder: &Path) -> Option<PathBuf> {
    let python = folder.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    let requirements = format!("{PROGRAMS}/sdk.txt");
    let works = python.exists() || succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder));
    if works && succeeds(Command::new(&python).args(pip).arg(requirements)) {
        return Some(python);
    }
    let required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    assert!(!required, "the Python client cannot be installed: it takes python3 with venv, and the network");
    println!("skipped: the Python client cannot be installed; it takes python3 with venv, and the network");
    None
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// An access key with every right, as people make them for scripts.
pub(crate) async fn full_key(network: &Network, owner: &Owner) -> AccessKey {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    use ApplicationRight::{Delete, Devices, MessagesDownWrite, MessagesUpRead, MessagesUpWrite, Settings};
    let rights = vec![Settings, Delete, Devices, MessagesUpRead, MessagesUpWrite, MessagesDownWrite];
    let new = NewAccessKey { name: "script".to_owned(), rights };
    account.add_access_key(&owner.token, &owner.app_id, &new).await.unwrap().key.unwrap()
}

/// Runs a program beside the services, which go on meanwhile.
pub(crate) async fn run(python: &'static Path, program: &str, environment: Vec<(&'static str, String)>) -> Output {
    let mut command = Command::new(python);
    command.arg(format!("{PROGRAMS}/{program}")).envs(environment);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_of_v2_works_as_it_is() {
    let Some(python) = python() else { return };
    let network = Network::start().await;
    let tls = network.stack.settings().client.discovery_address.clone();
    let plain = network.stack.discovery_http_address().unwrap().to_string();
    for (name, discovery, is_plain) in [("secure", tls, "no"), ("plain", plain, "yes")] {
        let owner = network.owner(name).await;
        let key = full_key(&network, &owner).await;
        let mut listener = owner.listen(&network).await;
        let roots = network.folder.path().join("ca.cert").display().to_string();
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
        let (topic, event) = loop {
            let (topic, event) = next(&mut listener).await;
            if topic.starts_with("dev-1/events/down") {
                break (topic, event);
            }
        };
        let scheduled = json!({"message": {"port": 2, "confirmed": true, "payload_fields": {"led": 1}}});
        assert_eq!((topic.as_str(), event), ("dev-1/events/down/scheduled", scheduled));
    }
    network.stack.stop().await;
}
