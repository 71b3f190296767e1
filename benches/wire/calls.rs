//! Reading and writing one device, over gRPC and HTTP: alone, and with many calls in flight.

use std::time::Instant;

use api::{handler::DeviceIdentifier, rest::handler as body};
use tokio::task::JoinSet;

use crate::{
    figures::{Figures, microseconds, quantile},
    load::{self, Load},
    seconds, shelf,
    site::{Site, Stub, sign},
};

/// Calls in flight where as many as possible are wanted.
const IN_FLIGHT: usize = 32;

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Set,
}

/// Microseconds of single calls, and how many are answered in a second when there are many.
struct Taken {
    alone_us: [f64; 2],
    per_second: f64,
}

pub(crate) async fn measure(figures: &mut Figures, site: &Site, store: &str) {
    for (operation, name) in [(Operation::Get, "GetDevice"), (Operation::Set, "SetDevice")] {
        figures.add(&format!("{name} over gRPC, {store}"), grpc(site, operation).await.shown(), "");
        figures.add(&format!("{name} over HTTP, {store}"), http(site, operation).await.shown(), "");
    }
}

impl Taken {
    fn shown(&self) -> String {
        let ([median, worst], per_second) = (self.alone_us, self.per_second);
        format!("p50 {median:.0} µs, p99 {worst:.0} µs; {per_second:.0}/s with {IN_FLIGHT} in flight")
    }
}

async fn grpc(site: &Site, operation: Operation) -> Taken {
    let alone = calls(site.stub.clone(), site.token.clone(), operation, 0).await;
    let mut many = JoinSet::new();
    for number in 0..IN_FLIGHT {
        many.spawn(calls(site.stub.clone(), site.token.clone(), operation, number));
    }
    let count: usize = many.join_all().await.iter().map(Vec::len).sum();
    Taken { alone_us: quantiles(alone), per_second: count as f64 / seconds().as_secs_f64() }
}

/// Calls one after the other about one device; how long each took, in microseconds.
async fn calls(mut stub: Stub, token: String, operation: Operation, device: usize) -> Vec<f64> {
    let (end, mut taken) = (Instant::now() + seconds(), Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        operation.call(&mut stub, &token, device).await;
        taken.push(microseconds(began.elapsed()));
    }
    taken
}

async fn http(site: &Site, operation: Operation) -> Taken {
    let load = |device| Load::new(site.http, &operation.request(site, device), 1);
    let alone = load(0).run_for(seconds()).await;
    alone.all(200);
    let mut many = JoinSet::new();
    for number in 0..IN_FLIGHT {
        let load = load(number);
        many.spawn(async move { load.run_for(seconds()).await });
    }
    let many = many.join_all().await;
    many.iter().for_each(|taken| taken.all(200));
    let per_second = many.iter().map(load::Taken::per_second).sum();
    Taken { alone_us: [0.5, 0.99].map(|part| alone.quantile_ms(part) * 1e3), per_second }
}

impl Operation {
    async fn call(self, stub: &mut Stub, token: &str, device: usize) {
        let (app_id, dev_id) = (shelf::app_id(0).to_string(), shelf::dev_id(device).to_string());
        match self {
            Self::Get => drop(stub.get_device(sign(DeviceIdentifier { app_id, dev_id }, token)).await.unwrap()),
            Self::Set => drop(stub.set_device(sign(message(device).into(), token)).await.unwrap()),
        }
    }

    /// The same as bytes of HTTP/1.1.
    fn request(self, site: &Site, device: usize) -> Vec<u8> {
        let (method, body) = match self {
            Self::Get => ("GET", String::new()),
            Self::Set => ("PUT", serde_json::to_string(&message(device)).unwrap()),
        };
        site.request(method, &format!("/applications/{}/devices/{}", shelf::app_id(0), shelf::dev_id(device)), &body)
    }
}

/// A device as a client sends it.
fn message(number: usize) -> body::Device {
    let device = shelf::device(shelf::app_id(0), number);
    let (app_id, dev_id) = (device.app_id.to_string(), device.dev_id.to_string());
    let lorawan = body::LorawanDevice {
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        dev_eui: device.lorawan.dev_eui,
        f_cnt_up: 1,
        ..Default::default()
    };
    body::Device { app_id, dev_id, lorawan_device: Some(lorawan), ..Default::default() }
}

fn quantiles(mut taken: Vec<f64>) -> [f64; 2] {
    [0.5, 0.99].map(|part| quantile(&mut taken, part))
}
