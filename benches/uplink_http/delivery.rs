//! Time of an uplink from its HTTP request to a subscriber at QoS 1, at a steady rate.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use rumqttc::{Event, EventLoop, Packet};
use testing::{figures::quantile, load::response};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::interval,
};

use super::{CONNECTIONS, connect};
use crate::server_process::{Application, ServerProcess};

/// A device with a connection of its own. It sends an uplink only after the one before has been delivered, so each
/// delivery belongs to the last request.
struct Device {
    stream: TcpStream,
    request: Vec<u8>,
    period: Duration,
    deliveries: UnboundedReceiver<Instant>,
}

/// Sends `per_second` uplinks for this long, and prints the achieved rate and the quantiles.
pub(super) async fn run(server: &ServerProcess, application: &Application, per_second: f64, time: Duration) {
    let period = Duration::from_secs_f64(CONNECTIONS as f64 / per_second);
    let (mut senders, mut devices, mut running) = (HashMap::new(), Vec::new(), JoinSet::new());
    for number in 0..CONNECTIONS {
        let dev_id = format!("dev-{number}");
        server.add_device(application, &dev_id).await;
        let (sender, deliveries) = unbounded_channel();
        senders.insert(dev_id.clone(), sender);
        let stream = TcpStream::connect(server.handler).await.unwrap();
        stream.set_nodelay(true).unwrap();
        devices.push(Device { stream, request: application.uplink(&dev_id), period, deliveries });
    }
    // Before the first uplink, whose delivery is waited for.
    let (client, events) = connect(server, application).await;
    let receiving = tokio::spawn(receive(events, Arc::new(senders)));
    devices.into_iter().for_each(|device| drop(running.spawn(device.run(Instant::now() + time))));
    let mut times = running.join_all().await.concat();
    receiving.abort();
    drop(client);

    println!("\nfrom the request to a subscriber at QoS 1, at a steady rate:\n");
    println!("| uplinks/s | p50 | p99 | maximum |\n|--:|--:|--:|--:|");
    let achieved = times.len() as f64 / time.as_secs_f64();
    let [p50, p99, maximum] = [0.5, 0.99, 1.0].map(|part| quantile(&mut times, part));
    println!("| {achieved:.0} | {p50:.2} ms | {p99:.2} ms | {maximum:.2} ms |");
}

impl Device {
    /// Sends uplinks until `end`; returns what each took, in milliseconds.
    async fn run(mut self, end: Instant) -> Vec<f64> {
        let mut ticks = interval(self.period);
        let (mut times, mut buffer) = (Vec::new(), Vec::new());
        while Instant::now() < end {
            // Counted from when it should have been sent, so that a slow delivery shows in those that it delays.
            let due = ticks.tick().await.into_std();
            self.stream.write_all(&self.request).await.unwrap();
            assert_eq!(response(&mut self.stream, &mut buffer).await, 200);
            let delivered = self.deliveries.recv().await.unwrap();
            times.push((delivered - due).as_secs_f64() * 1e3);
        }
        times
    }
}

/// Tells each device when its uplinks arrive.
async fn receive(mut events: EventLoop, devices: Arc<HashMap<String, UnboundedSender<Instant>>>) {
    loop {
        if let Event::Incoming(Packet::Publish(publish)) = events.poll().await.unwrap() {
            let dev_id = publish.topic.split('/').nth(2).unwrap();
            // A device that has ended does not look any more.
            devices.get(dev_id).map(|device| device.send(Instant::now()).ok());
        }
    }
}
