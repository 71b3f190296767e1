//! A configuration with TLS that serves every client, and one without: announcements and certificates.

mod openssl;

use std::{io::ErrorKind, net::TcpListener, path::Path};

use airlock::settings::{Settings, TlsMode};
use api::discovery::Announcement;
use client::{
    Error, Trust,
    data::{DataClient, Message, Topics},
    discovery::DiscoveryClient,
    handler::{HandlerClient, Page},
};
use types::{Credential, ServiceName};

use self::openssl::{Served, dial, make, text};
use crate::{
    delivery::third_party_clients::python_sdk::{full_key, python, run},
    devices::joins::network_broker::component_token,
    harness::{Network, Owner, PASSWORD, printed},
};

/// TLS 1.2 ciphers of clients built on gRPC's C core.
const CIPHERS: [&str; 3] =
    ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"];

fn with_mqtt(settings: &mut Settings) {
    settings.broker.tls_listen = "127.0.0.1:0".to_owned();
}

/// A certificate like those of v2: a self-signed authority for localhost, stored where commands look for it.
fn from_files(settings: &mut Settings) {
    let (certificate, key) = (settings.data_dir.join("ca.cert"), settings.data_dir.join("own.key"));
    make(&certificate, &key);
    settings.tls.mode = TlsMode::Files;
    (settings.tls.certificate, settings.tls.key) = (Some(certificate), Some(key));
    with_mqtt(settings);
}

async fn announcement(network: &Network, trust: &Trust) -> client::Result<Announcement> {
    let client = &network.stack.settings().client;
    DiscoveryClient::connect(&client.discovery_address, trust)?.get(ServiceName::Handler, &client.handler_id).await
}

fn listeners(network: &Network, announced: &Announcement) -> [String; 3] {
    let discovery = network.stack.settings().client.discovery_address.clone();
    [discovery, announced.net_address.clone(), network.stack.mqtt_tls_address().unwrap().to_string()]
}

// Conformance: The MQTT client: messages, downlinks, TLS
// Conformance: TLS for every client, with our own certificate or one like those of v2
#[tokio::test(flavor = "multi_thread")]
async fn the_generated_certificate_works_for_every_client() {
    serves_every_client(Network::with(with_mqtt).await).await;
}

// Conformance: TLS for every client, with our own certificate or one like those of v2
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_like_those_of_v2_works_for_every_client() {
    serves_every_client(Network::with(from_files).await).await;
}

async fn serves_every_client(network: Network) {
    let file = network.dir.path().join("ca.cert");
    let trust = Trust::Certificate(std::fs::read_to_string(&file).unwrap());
    let announced = announcement(&network, &trust).await.unwrap();
    let owner = network.owner("owner").await;
    for address in listeners(&network, &announced) {
        for cipher in CIPHERS {
            is_as_v2_announces_it(&dial(&address, &file, cipher).unwrap(), &announced, cipher);
        }
        assert!(dial(&address, &file, "ECDHE-ECDSA-AES128-SHA256").is_err(), "{address}");
    }
    our_client_is_served(&network, &owner, &announced).await;
    the_python_client_is_served(&network, &owner, &file).await;
    nobody_trusts_another_certificate(&network, &owner, &announced).await;
    network.stack.stop().await;
}

/// The served chain ends with the announced authority; all keys are P-256, and the leaf is for localhost.
fn is_as_v2_announces_it(served: &Served, announced: &Announcement, cipher: &str) {
    assert_eq!((served.protocol.as_str(), served.cipher.as_str()), ("TLSv1.2", cipher));
    assert_eq!(served.chain.last().unwrap().trim(), announced.certificate.trim());
    let texts: Vec<_> = served.chain.iter().map(|pem| text(pem)).collect();
    assert!(texts.iter().all(|text| text.contains("NIST CURVE: P-256")), "{texts:?}");
    assert!(texts.last().unwrap().contains("CA:TRUE"));
    assert!(texts[0].contains("DNS:localhost") && texts[0].contains("IP Address:127.0.0.1"), "{}", texts[0]);
}

async fn our_client_is_served(network: &Network, owner: &Owner, announced: &Announcement) {
    let trust = Trust::announced(&announced.certificate);
    owner.set_functions(["function Decoder(bytes) { return { n: bytes.length }; }", "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    for host in ["localhost", "127.0.0.1"] {
        let port = network.stack.mqtt_tls_address().unwrap().port();
        let key = Credential::Key(owner.key.clone());
        let address = format!("mqtts://{host}:{port}");
        let mqtt = DataClient::connect_with_trust(&address, &trust, &owner.app_id, &key).await.unwrap();
        let mut uplinks = mqtt.stream(Topics::uplinks()).await.unwrap();
        owner.simulate("dev-1", &[1, 2], 1).await.unwrap();
        let received = uplinks.next().await.unwrap().unwrap();
        let Message::Uplink(uplink) = &*received.message else { panic!("{:?}", received.message) };
        assert_eq!(uplink.payload_fields.as_ref().unwrap().get(), r#"{"n":2}"#);
    }
}

async fn the_python_client_is_served(network: &Network, owner: &Owner, roots: &Path) {
    let Some(python) = python() else { return };
    let discovery = network.stack.settings().client.discovery_address.clone();
    owner.handler.delete_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    let environment = vec![
        ("DISCOVERY", discovery),
        ("PLAIN", "no".to_owned()),
        ("APP_ID", owner.app_id.to_string()),
        ("ACCESS_KEY", full_key(network, owner).await.into()),
        ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", roots.display().to_string()),
    ];
    assert!(printed(&run(python, "sdk.py", environment).await).ends_with("done\n"));
}

async fn nobody_trusts_another_certificate(network: &Network, owner: &Owner, announced: &Announcement) {
    let dir = tempfile::tempdir().unwrap();
    let (file, key) = (dir.path().join("other.pem"), dir.path().join("other.key"));
    make(&file, &key);
    let other = Trust::Certificate(std::fs::read_to_string(&file).unwrap());
    let key = Credential::Key(owner.key.clone());
    let mqtt = network.stack.mqtt_tls_address().unwrap().to_string();
    let handler = HandlerClient::connect_to(&announced.net_address, &other, key.clone()).unwrap();
    for error in [
        announcement(network, &other).await.unwrap_err(),
        handler.list_devices(&owner.app_id, Page::default()).await.unwrap_err(),
        DataClient::connect_with_trust(&mqtt, &other, &owner.app_id, &key).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    }
    for address in listeners(network, announced) {
        assert!(dial(&address, &file, CIPHERS[0]).is_err(), "{address}");
    }
    let Some(python) = python() else { return };
    let discovery = network.stack.settings().client.discovery_address.clone();
    let roots = file.display().to_string();
    let environment = vec![("DISCOVERY", discovery), ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", roots)];
    assert_eq!(printed(&run(python, "wrong_certificate.py", environment).await), "done\n");
}

// Conformance: Plain text for every client that supports it
#[tokio::test(flavor = "multi_thread")]
async fn every_client_works_without_tls() {
    let network = Network::with(|settings| settings.tls.mode = TlsMode::Off).await;
    let announced = announcement(&network, &Trust::Plaintext).await.unwrap();
    assert_eq!(announced.certificate, "");
    // Our client and the command line find the handler by its announcement.
    let owner = network.owner("owner").await;
    assert!(owner.handler.list_devices(&owner.app_id, Page::default()).await.unwrap().is_empty());
    for (name, allow) in [("plain", &["--allow-insecure"][..]), ("encrypted", &[])] {
        let command = [allow, &["user", "register", name, "x@example.com", "--password-stdin"]].concat();
        printed(&network.type_command(&command, PASSWORD));
        let command = [allow, &["user", "login", name, "--password-stdin"]].concat();
        printed(&network.type_command(&command, PASSWORD));
        let add = network.type_command(&[allow, &["applications", "add", name, "Test"]].concat(), "");
        assert_eq!(add.status.success(), !allow.is_empty(), "{add:?}");
    }
    let address = network.stack.settings().client.discovery_address.clone();
    let Some(python) = python() else { return };
    let environment = vec![
        ("DISCOVERY", address),
        ("APP_ID", owner.app_id.to_string()),
        ("ACCESS_KEY", full_key(&network, &owner).await.into()),
    ];
    assert!(printed(&run(python, "plain.py", environment).await).ends_with("done\n"));
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_listen_everywhere_find_each_other() {
    let network = Network::with(|settings| {
        for listen in [&mut settings.listen.account, &mut settings.listen.discovery, &mut settings.listen.handler] {
            "0.0.0.0:0".clone_into(listen);
        }
    })
    .await;
    // It is found only once the handler has announced itself, over TLS.
    let owner = network.owner("alice").await;
    owner.add_device("dev-1").await;
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_without_a_certificate_gets_no_credentials() {
    let network = Network::start().await;
    network.owner("owner").await;
    printed(&network.type_command(&["user", "login", "owner", "--password-stdin"], PASSWORD));
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    plain.set_nonblocking(true).unwrap();
    let address = plain.local_addr().unwrap().to_string();
    let bare = Announcement {
        id: "bare".to_owned(),
        certificate: String::new(),
        net_address: address.clone(),
        mqtt_address: address,
        ..network.announcement().await
    };
    let token = component_token(&network, "owner", "handlers", &"bare".parse().unwrap()).await;
    network.discovery().announce(&token, bare).await.unwrap();
    for command in [&["devices", "list"], &["webhooks", "list"], &["subscribe", "--count=1"]] {
        let refused =
            network.type_command(&[&command[..], &["--app-id", "owner-app", "--handler-id", "bare"]].concat(), "");
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("client.allow_insecure"), "{command:?}: {error}");
    }
    assert_eq!(plain.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody has connected");
    network.stack.stop().await;
}
