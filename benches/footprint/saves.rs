//! Many saves of functions that keep much memory.

use futures::future::join_all;
use serde_json::{Value, json};
use testing::figures::Figures;

use crate::{
    process::Usage,
    server_process::{Application, ServerProcess},
};

const SAVES: usize = 60;

/// Count of numbers that a function keeps, of 16 bytes each: 7 MB.
const NUMBERS: usize = 430_000;

pub(crate) async fn save(figures: &mut Figures, server: &ServerProcess) {
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    figures.add("no saves", Usage::of(server).to_string(), "");
    for number in 0..SAVES {
        assert_eq!(put(server, &application, functions(number)).await, 200);
    }
    figures.add(&format!("{SAVES} saves of 7 MB, one after the other"), Usage::of(server).to_string(), "≤ 300 MB");
    let statuses = join_all((SAVES..2 * SAVES).map(|number| put(server, &application, functions(number)))).await;
    let refused = statuses.into_iter().filter(|status| *status == 503).count();
    let what = format!("{SAVES} more at the same time, of which {refused} got 503");
    figures.add(&what, Usage::of(server).to_string(), "≤ 300 MB");
}

/// Saves functions; returns the status of the response.
async fn put(server: &ServerProcess, application: &Application, functions: Value) -> u16 {
    let url = format!("http://{}/applications/{}", server.handler, application.id);
    let request = reqwest::Client::new().put(url).bearer_auth(application.token.expose()).json(&functions);
    request.send().await.unwrap().status().as_u16()
}

fn functions(number: usize) -> Value {
    let decoder = format!(
        "var kept = new Array({NUMBERS}).fill({number}.5); function Decoder(bytes) {{ return {{ n: kept[bytes[0]] }}; }}"
    );
    json!({ "payload_format": "custom", "decoder": decoder })
}
