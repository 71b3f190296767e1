//! Stand-ins for a network: Redis, Mosquitto and ChirpStack's API.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use api::chirpstack::CodecRuntime;
use rumqttc::v5::{AsyncClient, Event, MqttOptions, mqttbytes::QoS, mqttbytes::v5::Packet};
use testing::{CHIRPSTACK_APPLICATION, CHIRPSTACK_TOKEN, ChirpStackApi, Mosquitto, RedisProcess, redis_command};

use crate::input::{Input, dev_eui, profile_id};

const KEY: &[u8] = b"device:stream:event";
/// Number of commands that are sent before their responses are read.
const BATCH: usize = 1000;

pub(crate) struct Network {
    pub(crate) redis: RedisProcess,
    /// Another Redis, for decoded events.
    pub(crate) out: RedisProcess,
    pub(crate) broker: Mosquitto,
    pub(crate) api: ChirpStackApi,
    pub(crate) dir: tempfile::TempDir,
}

impl Network {
    pub(crate) async fn start(input: &Input) -> Self {
        let api = ChirpStackApi::start().await;
        for (number, profile) in input.profiles.iter().enumerate() {
            api.set_profile(&profile_id(number), CodecRuntime::Js, &profile.script);
        }
        for device in 0..input.devices {
            api.set_device(&dev_eui(device), &profile_id(input.profile_of(device)), &[]);
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), CHIRPSTACK_TOKEN).unwrap();
        let (redis, out) = (RedisProcess::start().unwrap(), RedisProcess::start().unwrap());
        Self { redis, out, broker: Mosquitto::start().unwrap(), api, dir }
    }

    /// Adds uplinks to the stream.
    pub(crate) fn fill(&self, input: &Input, uplinks: usize) {
        let mut stream = TcpStream::connect(self.redis.url().trim_start_matches("redis://")).unwrap();
        let mut responses = BufReader::new(stream.try_clone().unwrap()).lines();
        for batch in (0..uplinks).collect::<Vec<_>>().chunks(BATCH) {
            let commands: Vec<u8> = batch
                .iter()
                .flat_map(|number| redis_command(&[b"XADD", KEY, b"*", b"up", &input.encoded(*number)]))
                .collect();
            stream.write_all(&commands).unwrap();
            // The length of each id, and the id.
            responses.by_ref().take(2 * batch.len()).for_each(|line| assert!(!line.unwrap().starts_with('-')));
        }
    }

    /// Publishes uplinks, which wait in the sessions that receive them.
    pub(crate) async fn publish(&self, input: &Input, uplinks: usize) {
        let address = self.broker.address();
        let mut options = MqttOptions::new("chirpstack", address.ip().to_string(), address.port());
        options.set_max_packet_size(Some(1 << 20));
        let (client, mut connection) = AsyncClient::new(options, 100);
        let messages: Vec<_> = (0..uplinks)
            .map(|number| {
                let device = dev_eui(number % input.devices);
                let topic = format!("application/{CHIRPSTACK_APPLICATION}/device/{device}/event/up");
                (topic, serde_json::to_vec(&input.uplink(number)).unwrap())
            })
            .collect();
        tokio::spawn(async move {
            for (topic, payload) in messages {
                client.publish(topic, QoS::AtLeastOnce, false, payload).await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        let mut confirmed = 0;
        while confirmed < uplinks {
            confirmed += usize::from(matches!(connection.poll().await.unwrap(), Event::Incoming(Packet::PubAck(_))));
        }
    }

    /// The arguments of a bridge from Redis to Mosquitto.
    pub(crate) fn redis_to_mqtt(&self) -> [String; 4] {
        ["--redis".to_owned(), self.redis.url(), "--to".to_owned(), self.broker.url()]
    }
}
