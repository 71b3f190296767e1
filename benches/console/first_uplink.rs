//! From `airlock serve` to a decoded uplink in the live view, as the README words it, typed by a machine.

use std::time::Instant;

use testing::figures::Figures;

use crate::{
    page::{browser, until},
    server_process::{PASSWORD, ServerProcess},
};

/// The live view has the temperature of the README.
const IS_SHOWN: &str = "return document.querySelector('#live tbody')?.textContent.includes('23.96') ?? false;";
/// The live view waits for more.
const IS_OPEN: &str = "return document.getElementById('state')?.textContent.includes('appear here') ?? false;";

pub(crate) async fn measure(figures: &mut Figures) {
    let began = Instant::now();
    let server = ServerProcess::start("").await;
    let link = server.first_account_link().await;
    let browser = browser(&format!("http://{}", server.account)).await;
    let opened = Instant::now();
    browser.client.goto(&link).await.unwrap();
    browser.wait_for("Create the first account").await;
    browser.submit("main form", &[("password", PASSWORD)], "main form button", "Live view").await;
    until(&browser, "an uplink in the live view", IS_SHOWN, vec![]).await;
    until(&browser, "the live view", IS_OPEN, vec![]).await;
    figures.add(
        "`airlock serve` to a decoded live uplink, without the time of reading and typing",
        format!(
            "{:.1} s, {:.1} s of them from opening the printed address",
            began.elapsed().as_secs_f64(),
            opened.elapsed().as_secs_f64()
        ),
        "≤ 60 s with it",
    );
}
