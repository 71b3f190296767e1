//! Finds the handler, sets an application's decoder, tests it, and registers a device with a random key.
//!
//! `DISCOVERY=localhost:1900 CA_FILE=ca.cert HANDLER=handler APP_ID=my-app ACCESS_KEY=… cargo run -p airlock-client --example devices`

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "this is a standalone program"
)]

use std::{env, error::Error, fs};

use airlock_client::{
    Trust,
    api::{
        handler::{Application, DryUplinkMessage},
        rest::handler::{Device, LorawanDevice},
    },
    discovery::DiscoveryClient,
    handler::{HandlerClient, Page},
    random_eui, random_key,
    types::{AppId, AppKey, Credential, Random, ServiceName},
};

struct System;

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let trust = Trust::Certificate(fs::read_to_string(env::var("CA_FILE")?)?);
    let discovery = DiscoveryClient::connect(&env::var("DISCOVERY")?, &trust)?;
    let announcement = discovery.get(ServiceName::Handler, &env::var("HANDLER")?.parse()?).await?;
    let key = Credential::Key(env::var("ACCESS_KEY")?.parse()?);
    // The client trusts exactly the announced certificate.
    let handler = HandlerClient::connect(&announcement, key)?;
    let fields = run(&handler, &env::var("APP_ID")?.parse()?, &System).await?;
    println!("{fields}");
    Ok(())
}

/// Returns the decoded fields of a payload.
pub async fn run(handler: &HandlerClient, app_id: &AppId, random: &dyn Random) -> Result<String, Box<dyn Error>> {
    let decoder = "function Decoder(bytes, port) { return { temperature: (bytes[0] << 8 | bytes[1]) / 100 }; }";
    let app = Application { app_id: app_id.to_string(), decoder: decoder.into(), ..Application::default() };
    let uplink = DryUplinkMessage { payload: vec![0x09, 0x5C], app: Some(app.clone()), port: 1, ..Default::default() };
    let tried = handler.dry_uplink(uplink).await?;
    handler.set_application(app).await?;

    let lorawan = LorawanDevice {
        app_id: app_id.to_string(),
        dev_id: "thermometer".into(),
        dev_eui: random_eui(random),
        app_key: Some(AppKey::new(random_key(random))),
        ..LorawanDevice::default()
    };
    let (app_id_text, dev_id) = (app_id.to_string(), "thermometer".to_owned());
    let device = Device { app_id: app_id_text, dev_id, lorawan_device: Some(lorawan), ..Device::default() };
    handler.set_device(device.into()).await?;

    // Long lists are paginated.
    for device in handler.list_devices(app_id, Page { limit: 10, offset: 0 }).await? {
        println!("{}", device.dev_id);
    }
    Ok(tried.fields)
}
