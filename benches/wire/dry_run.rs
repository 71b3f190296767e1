//! Cost of a dry run beyond the time in its sandbox.

use std::{sync::Arc, time::Instant};

use api::handler::{Application, DryUplinkMessage};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use runtime::{Call, Engine, EntryPoint, Sources};
use serde_json::json;
use server::telemetry::Metrics;
use testing::load::{Load, Taken};

use crate::{
    dataset::{self, Dataset},
    figures::{Figures, median, microseconds},
    seconds,
    services::{Services, Stub, sign},
};

const DECODER: &str = include_str!("../../cli/commands/demo/decoder.js");
const CONVERTER: &str = include_str!("../../cli/commands/demo/converter.js");
const VALIDATOR: &str = include_str!("../../cli/commands/demo/validator.js");
const PAYLOAD: [u8; 4] = [0x01, 0x9a, 0xa8, 0xa0];

pub(crate) async fn measure(figures: &mut Figures, metrics: &Metrics) {
    let dataset = Dataset::file();
    dataset.fill(1, 1).await;
    let services = Services::start(dataset, metrics).await;
    let token = services.token.clone();
    let call = async move |stub: &mut Stub, _| drop(stub.dry_uplink(sign(message(), &token)).await.unwrap());
    let mut durations = services.time_calls(call).await;
    let (dry_run, bare) = (median(&mut durations), sandbox_us());
    let measured = format!("{:.0} µs ({dry_run:.0} µs − {bare:.0} µs)", dry_run - bare);
    figures.add("DryUplink over gRPC − the same call of a bare sandbox, medians", measured, "≤ 150 µs");
    let dry_run = http(&services).await.quantile_ms(0.5) * 1000.0;
    let measured = format!("{:.0} µs ({dry_run:.0} µs − {bare:.0} µs)", dry_run - bare);
    figures.add("DryUplink over HTTP − the same, medians", measured, "≤ 150 µs");
    services.stop().await;
}

/// Makes the same calls over HTTP, one after the other.
async fn http(services: &Services) -> Taken {
    let app = json!({"decoder": DECODER, "converter": CONVERTER, "validator": VALIDATOR});
    let body = json!({"payload": STANDARD.encode(PAYLOAD), "port": 1, "app": app}).to_string();
    let request = services.request("POST", &format!("/applications/{}/dry-uplink", dataset::app_id(0)), &body);
    let taken = Load::new(services.http, &request, 1).run_for(seconds()).await;
    taken.all(200);
    taken
}

fn message() -> DryUplinkMessage {
    let [decoder, converter, validator] = [DECODER, CONVERTER, VALIDATOR].map(str::to_owned);
    let app =
        Application { app_id: dataset::app_id(0).to_string(), decoder, converter, validator, ..Default::default() };
    DryUplinkMessage { payload: PAYLOAD.to_vec(), app: Some(app), port: 1, ..Default::default() }
}

/// The median time of the same message in a bare sandbox, in microseconds.
fn sandbox_us() -> f64 {
    let engine = Arc::new(Engine::new(&Default::default()).unwrap());
    let [decoder, converter, validator] = [DECODER, CONVERTER, VALIDATOR].map(str::to_owned);
    let sources = Sources { decoder, converter, validator, ..Sources::default() };
    let functions = engine.load(&sources, engine.limits()).unwrap();
    let call = Call {
        entry_point: EntryPoint::Uplink,
        port: 1,
        time_ms: 1,
        seed: 0,
        payload: PAYLOAD.to_vec(),
        extra: String::new(),
        single_function: None,
    };
    let mut sandbox = engine.sandbox();
    let mut taken = Vec::new();
    let end = Instant::now() + seconds();
    while Instant::now() < end {
        let began = Instant::now();
        sandbox.call(&functions, &call).result.unwrap();
        taken.push(microseconds(began.elapsed()));
    }
    median(&mut taken)
}
