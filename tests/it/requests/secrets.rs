//! Keys of devices and applications appear only where they are requested.

use api::{handler::Application, rest::handler::LorawanDevice};
use serde_json::{Value, json};
use tracing_subscriber::{filter::LevelFilter, fmt, layer::SubscriberExt, registry, reload, util::SubscriberInitExt};

use crate::{
    devices::joins::network_broker::{APP_EUI, BROKER, DEV_EUI, NetworkBroker},
    harness::{Network, device, next},
};

const APP_KEY: &str = "C0FFEE0123456789ABCDEF0BADC0DE42";

// Conformance: Keys have the exact length, and appear in no event, log or error
#[tokio::test(flavor = "multi_thread")]
async fn device_keys_appear_in_no_event_log_error_announcement_or_metric() {
    // The log of all tests that run at the same time.
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = log.reopen().unwrap();
    let (level, logging) = reload::Layer::new(LevelFilter::DEBUG);
    registry().with(level).with(fmt::layer().with_ansi(false).with_writer(writer)).init();
    let network = Network::with(|settings| settings.handler.network_brokers = vec![BROKER.parse().unwrap()]).await;
    let owner = network.owner("discreet").await;
    let broker = NetworkBroker::of(&network, "discreet", "brokers", BROKER).await;
    let mut listener = owner.listen(&network).await;
    let mut seen = Vec::new();

    let key = owner.key.expose().to_owned();
    let application = Application {
        app_id: owner.app_id.to_string(),
        register_on_join_access_key: key.clone(),
        decoder: "function Decoder() { throw new Error('no such thing'); }".to_owned(),
        ..Application::default()
    };
    owner.handler.set_application(application).await.unwrap();
    let mut body = device(&owner.app_id, "dev-1");
    let lorawan = body.lorawan_device.take().unwrap();
    let (app_eui, dev_eui) = (APP_EUI.parse().unwrap(), DEV_EUI.parse().unwrap());
    body.lorawan_device = Some(LorawanDevice { app_eui, dev_eui, app_key: Some(APP_KEY.parse().unwrap()), ..lorawan });
    owner.handler.set_device(body.clone().into()).await.unwrap();
    broker.join(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap();
    seen.push(broker.join(&owner.app_id, "dev-1", DEV_EUI, 1).await.unwrap_err().to_string());
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    // Two events about joining, the uplink, and the error of its decoder.
    for _ in 0..4 {
        seen.push(format!("{:?}", next(&mut listener).await));
    }
    let kept = owner.handler.get_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    let Some(api::handler::device::Device::LorawanDevice(kept)) = kept.device else { panic!("it is LoRaWAN") };

    let url = format!("{}/applications/{}/devices", network.handler_http(), owner.app_id);
    let send = async |path: &str, body: Value| {
        let request = reqwest::Client::new().put(format!("{url}{path}")).json(&body);
        request.header("authorization", owner.token.to_header()).send().await.unwrap().text().await.unwrap()
    };
    let mut wrong = json!(body);
    wrong["lorawan_device"]["app_key"] = format!("{APP_KEY}00").into();
    seen.push(send("/dev-1", wrong).await);
    // Another device with the same EUIs.
    let mut twin = json!(body);
    (twin["dev_id"], twin["lorawan_device"]["dev_id"]) = ("dev-2".into(), "dev-2".into());
    seen.push(send("/dev-2", twin).await);
    let discovery = network.stack.discovery_http_address().unwrap();
    let places = network.stack.overview();
    let metrics = places.lines().find_map(|line| line.trim().strip_prefix("metrics")).unwrap().trim().to_owned();
    for url in [format!("http://{discovery}/announcements/handler"), metrics] {
        seen.push(reqwest::get(url).await.unwrap().text().await.unwrap());
    }
    network.stack.stop().await;
    logging.reload(LevelFilter::OFF).unwrap();
    let logged = String::from_utf8_lossy(&std::fs::read(log.path()).unwrap()).into_owned();
    assert!(logged.contains("sandboxes are ready"), "the log is looked at");
    seen.push(logged);

    let session = [hex::encode(&kept.nwk_s_key), hex::encode(&kept.app_s_key)];
    let (_, secret) = key.split_once('.').unwrap();
    for canary in [APP_KEY.to_lowercase(), secret.to_lowercase()].into_iter().chain(session) {
        assert!(canary.len() >= 16 && canary.chars().any(|digit| digit != '0'), "{canary}");
        for text in &seen {
            assert!(!text.to_lowercase().contains(&canary), "{canary} is in {text}");
        }
    }
}
