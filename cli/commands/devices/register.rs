//! `airlock devices register`: one device, or what devices register themselves from when they join.

use anyhow::{Context, bail};
use api::rest::{
    account::NewAccessKey,
    handler::{Device, LorawanDevice},
};
use client::{account::AccountClient, handler::HandlerClient, random_eui, random_key};
use types::{AccessKey, AppEui, AppId, AppKey, ApplicationRight, Credential, DevEui, DevId, Kind, Kinded, Random};

use super::args::{Register, RegisterCommand};
use crate::{
    commands::location::Location,
    terminal::{fields, say},
};

/// The name of the access key with which a handler registers devices that join.
const ON_JOIN: &str = "register-on-join";

/// Where devices are registered, and as whom.
pub(super) struct Place<'a> {
    pub(super) handler: HandlerClient,
    pub(super) account: AccountClient,
    pub(super) credential: Credential,
    pub(super) app_id: AppId,
    pub(super) app_eui: AppEui,
    pub(super) random: &'a dyn Random,
}

/// Registers what was asked for.
pub(super) async fn run(place: Place<'_>, register: Register) -> anyhow::Result<()> {
    let Register { command, dev_id, dev_eui, app_key, location } = register;
    match command {
        Some(RegisterCommand::OnJoin { prefix, app_key }) => on_join(place, prefix, app_key).await,
        None => one(place, dev_id.context("a device needs an id")?, (dev_eui, app_key), location).await,
    }
}

/// Registers a device.
async fn one(
    place: Place<'_>,
    dev_id: DevId,
    (dev_eui, app_key): (Option<DevEui>, Option<AppKey>),
    location: Option<Location>,
) -> anyhow::Result<()> {
    let dev_eui = dev_eui.unwrap_or_else(|| random_eui(place.random));
    let mut device = new_device(place.app_id.clone(), dev_id, place.app_eui, dev_eui);
    if let Some(location) = location {
        // The handler keeps them with fewer digits.
        (device.latitude, device.longitude) = (location.latitude as f32, location.longitude as f32);
        device.altitude = location.altitude.unwrap_or_default();
    }
    let app_key = place.key(app_key);
    create(&place.handler, device, app_key).await
}

/// Registers what devices register themselves from: a device without an EUI of its own.
async fn on_join(place: Place<'_>, prefix: DevId, app_key: Option<AppKey>) -> anyhow::Result<()> {
    let app_key = place.key(app_key);
    let handler = &place.handler;
    let key = place.access_key().await?;
    let mut application = handler.get_application(&place.app_id).await?;
    if application.register_on_join_access_key != key.expose() {
        application.register_on_join_access_key = key.expose().to_owned();
        handler.set_application(application).await?;
    }
    create(handler, new_device(place.app_id.clone(), prefix, place.app_eui, DevEui::default()), app_key).await
}

impl Place<'_> {
    fn key(&self, given: Option<AppKey>) -> AppKey {
        given.unwrap_or_else(|| AppKey::new(random_key(self.random)))
    }

    /// The access key for registering on join; made when there is none, since a key that is there may be in use.
    async fn access_key(&self) -> anyhow::Result<AccessKey> {
        let keys = self.account.access_keys(&self.credential, &self.app_id).await?;
        let key = match keys.into_iter().find(|key| key.name == ON_JOIN) {
            Some(key) if key.rights.contains(&ApplicationRight::Devices) => key,
            Some(_) => bail!("the access key {ON_JOIN} lacks the right `devices`: delete it, and it will be made anew"),
            None => {
                let new = NewAccessKey { name: ON_JOIN.to_owned(), rights: vec![ApplicationRight::Devices] };
                self.account.add_access_key(&self.credential, &self.app_id, &new).await?
            }
        };
        key.key.with_context(|| format!("the access key {ON_JOIN} has more rights than you: you may not see it"))
    }
}

/// A device with nothing but its names.
pub(crate) fn new_device(app_id: AppId, dev_id: DevId, app_eui: AppEui, dev_eui: DevEui) -> Device {
    let (app_id, dev_id) = (String::from(app_id), String::from(dev_id));
    let lorawan = LorawanDevice {
        app_eui,
        dev_eui,
        app_id: app_id.clone(),
        dev_id: dev_id.clone(),
        uses32_bit_f_cnt: true,
        ..LorawanDevice::default()
    };
    Device { app_id, dev_id, lorawan_device: Some(lorawan), ..Device::default() }
}

async fn create(handler: &HandlerClient, mut device: Device, app_key: AppKey) -> anyhow::Result<()> {
    match handler.get_device(&device.app_id.parse()?, &device.dev_id.parse()?).await {
        Ok(_) => bail!("device {} is registered already: choose another id", device.dev_id),
        Err(error) if error.kind() == Kind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let (dev_id, app_key_text) = (device.dev_id.clone(), app_key.to_hex());
    let lorawan = device.lorawan_device.as_mut().context("a new device is a LoRaWAN device")?;
    let (app_eui, dev_eui) = (lorawan.app_eui.to_hex(), lorawan.dev_eui.to_hex());
    lorawan.app_key = Some(app_key);
    handler.set_device(device.into()).await?;
    say(format_args!("Registered device {dev_id}"))?;
    fields([("AppEUI", app_eui), ("DevEUI", dev_eui), ("AppKey", app_key_text)])
}
