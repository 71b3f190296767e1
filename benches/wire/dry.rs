//! What a trial costs beyond the sandbox that it runs in.

use std::{sync::Arc, time::Instant};

use api::handler::{Application, DryUplinkMessage};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use runtime::{Call, Engine, Entry, Sources};
use serde_json::json;
use server::telemetry::Metrics;

use crate::{
    figures::{Figures, median, microseconds},
    load::{Load, Taken},
    seconds,
    shelf::{self, Shelf},
    site::Site,
};

const DECODER: &str = include_str!("../../cli/demo/decoder.js");
const CONVERTER: &str = include_str!("../../cli/demo/converter.js");
const VALIDATOR: &str = include_str!("../../cli/demo/validator.js");
const PAYLOAD: [u8; 4] = [0x01, 0x9a, 0xa8, 0xa0];
/// Trials before it counts: the first ones load the functions.
const WARM_UP: usize = 200;

pub(crate) async fn measure(figures: &mut Figures, metrics: &Metrics) {
    let shelf = Shelf::file();
    shelf.fill(1, 1).await;
    let site = Site::start(shelf, metrics).await;
    let call = async || drop(site.stub.clone().dry_uplink(site.sign(message())).await.unwrap());
    for _ in 0..WARM_UP {
        call().await;
    }
    let (end, mut trials) = (Instant::now() + seconds(), Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        call().await;
        trials.push(microseconds(began.elapsed()));
    }
    let (trial, bare) = (median(&mut trials), sandbox_us());
    let measured = format!("{:.0} µs ({trial:.0} µs − {bare:.0} µs)", trial - bare);
    figures.add("DryUplink over gRPC − the same call of a bare sandbox, medians", measured, "≤ 150 µs");
    let trial = http(&site).await.quantile_ms(0.5) * 1000.0;
    let measured = format!("{:.0} µs ({trial:.0} µs − {bare:.0} µs)", trial - bare);
    figures.add("DryUplink over HTTP − the same, medians", measured, "≤ 150 µs");
    site.stop().await;
}

/// The same trials over HTTP, one after the other.
async fn http(site: &Site) -> Taken {
    let app = json!({"decoder": DECODER, "converter": CONVERTER, "validator": VALIDATOR});
    let body = json!({"payload": STANDARD.encode(PAYLOAD), "port": 1, "app": app}).to_string();
    let request = site.request("POST", &format!("/applications/{}/dry-uplink", shelf::app_id(0)), &body);
    let taken = Load::new(site.http, &request, 1).run_for(seconds()).await;
    taken.all(200);
    taken
}

fn message() -> DryUplinkMessage {
    let [decoder, converter, validator] = [DECODER, CONVERTER, VALIDATOR].map(str::to_owned);
    let app = Application { app_id: shelf::app_id(0).to_string(), decoder, converter, validator, ..Default::default() };
    DryUplinkMessage { payload: PAYLOAD.to_vec(), app: Some(app), port: 1 }
}

/// The median of the same message in a sandbox, in microseconds.
fn sandbox_us() -> f64 {
    let engine = Arc::new(Engine::new(&Default::default()).unwrap());
    let [decoder, converter, validator] = [DECODER, CONVERTER, VALIDATOR].map(str::to_owned);
    let sources = Sources { decoder, converter, validator, ..Sources::default() };
    let functions = engine.load(&sources, engine.limits()).unwrap();
    let call = Call { entry: Entry::Uplink, port: 1, time_ms: 1, seed: 0, payload: PAYLOAD.to_vec(), trial: None };
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
