//! The speed of the console and the playground for whoever looks at them, in a real browser: Chromium through
//! chromedriver.
//!
//! Starts `airlock serve` as a process of its own for each figure; `AIRLOCK_BINARY` names another binary than the one
//! built with this bench. Times are those of the page (`performance.now`, observers) and, where something begins
//! outside of it, of the same machine's clock. `CONSOLE_FIGURES` selects figures, all by default: `start`,
//! `first_uplink`, `latency`, `minute`, `editor`, `charts`, `fleet`.
//!
//! | variable | meaning | default |
//! |---|---|--:|
//! | `CONSOLE_SECONDS` | time of the live views, each | 60 |
//! | `CONSOLE_UPLINKS` | uplinks of a chart, in millions | 1 |
//! | `CONSOLE_DEVICES` | devices of the fleet | 10,000 |
//! | `CONSOLE_CODECS` | number of codecs that are typed into | 60 |
//! | `AIRLOCK_CORPUS` | a directory of records of codecs | our own |

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod charts;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/it/browser/driver.rs"]
mod driver;
mod editor;
mod first_uplink;
mod fleet;
mod harness;
mod live;
mod page;
#[path = "../shared/codecs.rs"]
mod records;
#[path = "../uplink_http/server_process.rs"]
mod server_process;
mod start;

use std::{env, process::Command};

use testing::figures::Figures;

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let selected = text("CONSOLE_FIGURES").unwrap_or_default();
    let names: Vec<&str> = selected.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known = ["start", "first_uplink", "latency", "minute", "editor", "charts", "fleet"];
    let unknown = names.iter().find(|name| !known.contains(name));
    assert!(unknown.is_none(), "CONSOLE_FIGURES has {unknown:?}, and must have some of {}", known.join(","));
    let is_wanted = |name: &str| names.is_empty() || names.contains(&name);
    let mut figures = Figures::default();
    if is_wanted("start") {
        start::measure(&mut figures).await;
    }
    if is_wanted("first_uplink") {
        first_uplink::measure(&mut figures).await;
    }
    if is_wanted("latency") {
        live::latency(&mut figures).await;
    }
    if is_wanted("minute") {
        live::minute(&mut figures).await;
    }
    if is_wanted("editor") {
        editor::measure(&mut figures).await;
    }
    if is_wanted("charts") {
        charts::measure(&mut figures).await;
    }
    if is_wanted("fleet") {
        fleet::measure(&mut figures).await;
    }
    figures.print();
}

/// The value of an environment variable.
fn text(variable: &str) -> Option<String> {
    env::var_os(variable).map(|value| value.into_string().unwrap())
}

/// The number in an environment variable.
fn number(variable: &str, default: f64) -> f64 {
    text(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The program that is measured, without what the environment says to this bench: it would read that as settings.
fn airlock() -> Command {
    let binary = text("AIRLOCK_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_airlock").to_owned());
    let mut command = Command::new(binary);
    for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AIRLOCK_")) {
        command.env_remove(name);
    }
    command
}
