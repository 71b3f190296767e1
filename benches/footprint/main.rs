//! Cost of many MQTT clients, and of many saves of large functions, for the server: memory and file descriptors.
//!
//! Starts `airlock serve` as a process of its own; `AIRLOCK_BINARY` names another binary than the one built with this
//! bench. Clients connect, subscribe to all uplinks of one application, are idle, and then all receive one.
//! `FOOTPRINT_CLIENTS` has their numbers, 1,000, 5,000 and 10,000 by default: raise `ulimit -n` above them. The
//! functions keep 7 MB each when they are loaded; one application saves 60 of them one after the other, and then 60
//! others at the same time.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod clients;
mod process;
mod saves;
#[path = "../uplink_http/server_process.rs"]
mod server_process;

use testing::figures::Figures;

use crate::server_process::ServerProcess;

const SETTINGS: &str = "broker.connections_max = 100000\n\
                        broker.connections_per_application_max = 100000\n\
                        broker.connects_per_credential = { burst = 1000000, per_hour = 1000000 }\n\
                        broker.connects_per_address = { burst = 1000000, per_hour = 1000000 }\n";

#[tokio::main]
async fn main() {
    ::server::system::install_crypto();
    let mut figures = Figures::default();
    clients::measure(&mut figures).await;
    // A process that has not served clients, so that their memory is not counted.
    let server = ServerProcess::start(SETTINGS).await;
    println!("{}", server.binary);
    saves::save(&mut figures, &server).await;
    figures.print();
}
