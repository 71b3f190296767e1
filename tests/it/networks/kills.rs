//! A server that is killed loses nothing that it had not accepted.

use std::{net::SocketAddr, process::Stdio};

use serde_json::Value;
use testing::{CHIRPSTACK_APPLICATION, MqttClient, Proxy, RedisProcess, chirpstack_uplink};

use super::harness::{ChirpStack, DEVICE, Server, uplink};
use crate::harness::server_process::{ServerProcess, serve};

/// The store is away when the server is killed, so whatever it acknowledged by then would be lost. `member` is the
/// setting of the source's URL, which gets the address of a proxy.
async fn check_killed_without_its_store(
    chirpstack: ChirpStack,
    (member, scheme, source): (&str, &str, SocketAddr),
    mut send: impl AsyncFnMut(&Value),
) {
    let (Some(redis), dir) = (RedisProcess::start(), tempfile::tempdir().unwrap()) else { return };
    let events = Proxy::start(Some(source)).await;
    let source_setting = format!("chirpstack.{member}.url = '{scheme}://{}'", events.address);
    chirpstack.settings_from(dir.path(), &source_setting, CHIRPSTACK_APPLICATION, "register = true\nids = 'eui'");
    let address = redis.url().trim_start_matches("redis://").parse().unwrap();
    let store = Proxy::start(Some(address)).await;
    let command = || {
        let mut command = serve(dir.path());
        command.env("AIRLOCK_STORE__REDIS__URLS", format!("[\"redis://{}\"]", store.address));
        command.stderr(Stdio::null());
        command
    };
    let mut server = Server::start_with(&mut command(), dir.path()).await;
    send(&uplink(DEVICE, "Kitchen", 0)).await;
    while server.next().await.0 != format!("{DEVICE}/up") {}
    store.redirect(None).await;
    for counter in 1..30 {
        send(&uplink(DEVICE, "Kitchen", counter)).await;
    }
    server.wait_for_metric("airlock_bridge_retried_total").await;
    server.process.kill();
    // Nothing comes before there is somebody to receive it.
    events.redirect(None).await;
    store.redirect(Some(address)).await;
    server.process = ServerProcess::spawn(&mut command());
    server.listener = server.owner.listen_at(server.process.place("MQTT")).await;
    events.redirect(Some(source)).await;
    let mut next = 1;
    while next < 30 {
        let (topic, up) = server.next().await;
        assert_eq!(topic, format!("{DEVICE}/up"));
        let counter = up["counter"].as_u64().unwrap();
        assert!(counter <= next, "{counter} came before {next}");
        next = next.max(counter + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_has_acknowledged_nothing_that_it_had_not_accepted() {
    let Some(chirpstack) = ChirpStack::start().await else { return };
    let mut client = MqttClient::connect(&chirpstack.broker.url()).await;
    let address = chirpstack.broker.address();
    let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{DEVICE}/event/up");
    let send = async |event: &Value| client.publish(&topic, event.to_string()).await;
    check_killed_without_its_store(chirpstack, ("mqtt", "mqtt", address), send).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_continues_a_redis_stream_where_it_was() {
    let (Some(chirpstack), Some(redis)) = (ChirpStack::start().await, RedisProcess::start()) else { return };
    let address = redis.url().trim_start_matches("redis://").parse().unwrap();
    let send = async |event: &Value| {
        redis.call(&[b"XADD", b"device:stream:event", b"*", b"up", &chirpstack_uplink(event)]);
    };
    check_killed_without_its_store(chirpstack, ("redis", "redis", address), send).await;
}
