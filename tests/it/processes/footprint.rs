//! Resources of the server process that clients take.

use crate::harness::server_process::ServerProcess;

const CLIENTS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn an_mqtt_client_takes_one_file_descriptor() {
    server::system::install_crypto();
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(dir.path());
    let owner = server.owner(dir.path(), "crowded").await;
    // The first one also opens what clients share, such as a connection to the account service.
    let mut clients = vec![owner.connection(server.place("MQTT")).await];
    let before = server.descriptors();
    for _ in 0..CLIENTS {
        clients.push(owner.connection(server.place("MQTT")).await);
    }
    let after = server.descriptors();
    // Connections between the services come and go.
    assert!(after < before + CLIENTS * 3 / 2, "{before} and {CLIENTS} clients make {after}");
}
