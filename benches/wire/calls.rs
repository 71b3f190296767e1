//! Reading and writing one device over gRPC and HTTP: one call at a time, and many concurrently.

use std::time::Instant;

use api::{handler::DeviceIdentifier, rest::handler as body};
use testing::load::{self, Load};
use tokio::task::JoinSet;

use crate::{
    dataset,
    figures::{Figures, quantile},
    seconds,
    services::{Services, Stub, sign},
};

/// Concurrent calls when throughput is measured.
const IN_FLIGHT: usize = 32;

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Set,
}

/// Latency of single calls (p50 and p99), and throughput of concurrent ones.
struct Cost {
    alone_us: [f64; 2],
    per_second: f64,
}

pub(crate) async fn measure(figures: &mut Figures, services: &Services, store: &str) {
    for (operation, name) in [(Operation::Get, "GetDevice"), (Operation::Set, "SetDevice")] {
        figures.add(&format!("{name} over gRPC, {store}"), grpc(services, operation).await.to_text(), "");
        figures.add(&format!("{name} over HTTP, {store}"), http(services, operation).await.to_text(), "");
    }
}

impl Cost {
    fn to_text(&self) -> String {
        let ([median, worst], per_second) = (self.alone_us, self.per_second);
        format!("p50 {median:.0} µs, p99 {worst:.0} µs; {per_second:.0}/s with {IN_FLIGHT} in flight")
    }
}

async fn grpc(services: &Services, operation: Operation) -> Cost {
    let token = services.token.clone();
    let alone = services.time_calls(async move |stub, _| operation.call(stub, &token, 0).await).await;
    let mut many = JoinSet::new();
    for number in 0..IN_FLIGHT {
        many.spawn(count(services.stub.clone(), services.token.clone(), operation, number));
    }
    let count: usize = many.join_all().await.iter().sum();
    Cost { alone_us: quantiles(alone), per_second: count as f64 / seconds().as_secs_f64() }
}

/// Makes calls about one device, one after the other; returns their number.
async fn count(mut stub: Stub, token: String, operation: Operation, device: usize) -> usize {
    let (end, mut count) = (Instant::now() + seconds(), 0);
    while Instant::now() < end {
        operation.call(&mut stub, &token, device).await;
        count += 1;
    }
    count
}

async fn http(services: &Services, operation: Operation) -> Cost {
    let load = |device| Load::new(services.http, &operation.request(services, device), 1);
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
    Cost { alone_us: [0.5, 0.99].map(|part| alone.quantile_ms(part) * 1e3), per_second }
}

impl Operation {
    async fn call(self, stub: &mut Stub, token: &str, device: usize) {
        let (app_id, dev_id) = (dataset::app_id(0).to_string(), dataset::dev_id(device).to_string());
        match self {
            Self::Get => drop(stub.get_device(sign(DeviceIdentifier { app_id, dev_id }, token)).await.unwrap()),
            Self::Set => drop(stub.set_device(sign(message(device).into(), token)).await.unwrap()),
        }
    }

    /// The operation as an HTTP/1.1 request.
    fn request(self, services: &Services, device: usize) -> Vec<u8> {
        let (method, body) = match self {
            Self::Get => ("GET", String::new()),
            Self::Set => ("PUT", serde_json::to_string(&message(device)).unwrap()),
        };
        services.request(
            method,
            &format!("/applications/{}/devices/{}", dataset::app_id(0), dataset::dev_id(device)),
            &body,
        )
    }
}

fn message(number: usize) -> body::Device {
    let device = dataset::device(dataset::app_id(0), number);
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
