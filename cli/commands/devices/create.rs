//! `airlock devices register`: registers a device, or a template for devices that register when they join.

use anyhow::{Context, bail};
use api::rest::{account::NewAccessKey, handler::Device};
use client::{handler::HandlerClient, random_eui, random_key};
use device_file::new_device;
use types::{AccessKey, AppEui, AppId, AppKey, ApplicationRight, Credential, DevEui, DevId, Kind, Kinded};

use super::args::{Register, RegisterCommand};
use crate::{command_context::CommandContext, output::Record, values::location::Location};

/// The name of the access key with which the handler registers devices that join.
const ACCESS_KEY_NAME: &str = "register-on-join";

/// Handler, application and credential for registering devices.
pub(super) struct Registration<'a> {
    pub(super) context: &'a CommandContext,
    pub(super) handler: HandlerClient,
    pub(super) credential: Credential,
    pub(super) app_id: AppId,
    pub(super) app_eui: AppEui,
}

pub(super) async fn run(registration: Registration<'_>, register: Register) -> anyhow::Result<()> {
    let Register { command, dev_id, dev_eui, app_key, location } = register;
    match command {
        Some(RegisterCommand::OnJoin { prefix, app_key }) => on_join(registration, prefix, app_key).await,
        None => one(registration, dev_id.context("a device id is missing")?, (dev_eui, app_key), location).await,
    }
}

async fn one(
    registration: Registration<'_>,
    dev_id: DevId,
    (dev_eui, app_key): (Option<DevEui>, Option<AppKey>),
    location: Option<Location>,
) -> anyhow::Result<()> {
    let dev_eui = dev_eui.unwrap_or_else(|| random_eui(registration.context.random.as_ref()));
    let mut device = new_device(registration.app_id.clone(), dev_id, registration.app_eui, dev_eui);
    if let Some(location) = location {
        // The handler stores single precision.
        (device.latitude, device.longitude) = (location.latitude as f32, location.longitude as f32);
        device.altitude = location.altitude.unwrap_or_default();
    }
    let app_key = registration.app_key(app_key);
    registration.create(device, app_key).await
}

/// Registers a template, which is a device without a DevEUI.
async fn on_join(registration: Registration<'_>, prefix: DevId, app_key: Option<AppKey>) -> anyhow::Result<()> {
    let app_key = registration.app_key(app_key);
    let handler = &registration.handler;
    let key = registration.access_key().await?;
    let mut application = handler.get_application(&registration.app_id).await?;
    if application.register_on_join_access_key != key.expose() {
        application.register_on_join_access_key = key.expose().to_owned();
        handler.set_application(application).await?;
    }
    let template = new_device(registration.app_id.clone(), prefix, registration.app_eui, DevEui::default());
    registration.create(template, app_key).await
}

impl Registration<'_> {
    fn app_key(&self, given: Option<AppKey>) -> AppKey {
        given.unwrap_or_else(|| AppKey::new(random_key(self.context.random.as_ref())))
    }

    /// The access key for registering on join; created if there is none.
    async fn access_key(&self) -> anyhow::Result<AccessKey> {
        let account = self.context.account()?;
        let keys = account.access_keys(&self.credential, &self.app_id).await?;
        let key = match keys.into_iter().find(|key| key.name == ACCESS_KEY_NAME) {
            Some(key) if key.rights.contains(&ApplicationRight::Devices) => key,
            Some(_) => bail!(
                "the access key {ACCESS_KEY_NAME} lacks the right `devices`: delete it, and run this command again"
            ),
            None => {
                let new = NewAccessKey { name: ACCESS_KEY_NAME.to_owned(), rights: vec![ApplicationRight::Devices] };
                account.add_access_key(&self.credential, &self.app_id, &new).await?
            }
        };
        key.key.with_context(|| {
            format!("the access key {ACCESS_KEY_NAME} has rights that you do not have, so you may not see it")
        })
    }

    async fn create(&self, mut device: Device, app_key: AppKey) -> anyhow::Result<()> {
        match self.handler.get_device(&device.app_id.parse()?, &device.dev_id.parse()?).await {
            Ok(_) => bail!("device {} is already registered: choose another id", device.dev_id),
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let (dev_id, app_key_hex) = (device.dev_id.clone(), app_key.to_hex());
        let lorawan = device.lorawan_device.as_mut().context("a new device lacks its LoRaWAN part")?;
        let (app_eui, dev_eui) = (lorawan.app_eui.to_hex(), lorawan.dev_eui.to_hex());
        lorawan.app_key = Some(app_key);
        self.handler.set_device(device.into()).await?;
        self.context.output.message(format_args!("Registered device {dev_id}"))?;
        self.context.output.record(Record::new([
            (("app_eui", "AppEUI"), app_eui.into()),
            (("dev_eui", "DevEUI"), dev_eui.into()),
            (("app_key", "AppKey"), app_key_hex.into()),
        ]))
    }
}
