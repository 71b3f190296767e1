//! Cost of a call in a large store compared with a small one, and memory and disk of a large store.

use std::time::Instant;

use api::handler::DeviceIdentifier;
use server::telemetry::Metrics;
use types::DevicePath;

use crate::{
    dataset::{self, Dataset},
    figures::{Figures, median, microseconds},
    number, process, seconds,
    services::{Services, Stub, TOKEN_APPLICATIONS, sign},
};

/// The size of the small store.
const DEVICES_FEW: usize = 1000;

/// Medians, in microseconds.
struct Cost {
    /// Reading any device and its application from the store.
    look_up: f64,
    /// GetDevice over gRPC, for devices of a few applications.
    get_device: f64,
}

pub(crate) async fn measure(figures: &mut Figures, metrics: &Metrics) {
    let (devices, applications) = (number("WIRE_DEVICES", 1_000_000), number("WIRE_APPLICATIONS", 10_000));
    let few = cost(Dataset::file(), metrics, (TOKEN_APPLICATIONS, DEVICES_FEW / TOKEN_APPLICATIONS), |_| ()).await;
    let before = process::resident_mib();
    let began = Instant::now();
    let loaded = |dataset: &Dataset| {
        let (taken, memory) = (began.elapsed().as_secs_f64(), process::resident_mib() - before);
        let size = dataset.file_mib();
        let load = format!("{taken:.0} s, {:.0}/s", devices as f64 / taken);
        figures.add(&format!("loading {devices} devices of {applications} applications, redb"), load, "");
        figures.add("resident memory after that, beyond before", format!("{memory:.0} MiB"), "");
        let each = size * f64::from(1 << 20) / devices as f64;
        figures.add("file after that", format!("{size:.0} MiB, {each:.0} bytes a device"), "");
    };
    let many = cost(Dataset::file(), metrics, (applications, devices / applications), loaded).await;
    for (name, few, many) in [
        ("any device with its application, from the store", few.look_up, many.look_up),
        ("GetDevice over gRPC", few.get_device, many.get_device),
    ] {
        let name = format!("{name}: among {devices} ÷ among {DEVICES_FEW}");
        figures.add(&name, format!("{:.2} ({many:.0} µs ÷ {few:.0} µs)", many / few), "≤ 1.5");
    }
}

/// Fills a store and measures its calls.
async fn cost(
    dataset: Dataset,
    metrics: &Metrics,
    (applications, devices): (usize, usize),
    filled: impl FnOnce(&Dataset),
) -> Cost {
    dataset.fill(applications, devices).await;
    filled(&dataset);
    let (_, store) = dataset.devices(dataset.open().await).await;
    let look_up = median_us(async |number| {
        let (app_id, dev_id) =
            (dataset::app_id(number % applications), dataset::dev_id(number / applications % devices));
        store.get_with_summary(DevicePath { app_id: &app_id, dev_id: &dev_id }).await.unwrap();
    });
    let look_up = look_up.await;
    drop(store);
    let services = Services::start(dataset, metrics).await;
    let token = services.token.clone();
    let get_device = services.time_calls(async move |stub: &mut Stub, call| {
        let number = spread(call);
        let (app_id, dev_id) =
            (dataset::app_id(number % TOKEN_APPLICATIONS), dataset::dev_id(number / TOKEN_APPLICATIONS % devices));
        let message = DeviceIdentifier { app_id: app_id.to_string(), dev_id: dev_id.to_string() };
        stub.get_device(sign(message, &token)).await.unwrap();
    });
    let get_device = median(&mut get_device.await);
    services.stop().await;
    Cost { look_up, get_device }
}

/// The median time of a call, with numbers spread over the whole range.
async fn median_us(call: impl AsyncFn(usize)) -> f64 {
    let (end, mut taken) = (Instant::now() + seconds(), Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        call(spread(taken.len())).await;
        taken.push(microseconds(began.elapsed()));
    }
    median(&mut taken)
}

/// Spreads numbers of calls over a range: the step is coprime to all our counts, so every number comes up.
fn spread(call: usize) -> usize {
    call.wrapping_mul(7_368_787)
}
