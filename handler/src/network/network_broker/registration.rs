//! Applications and devices in the network servers behind network brokers.
//!
//! A network broker that has not announced itself has no network server to tell.

use api::lorawan;
use client::network_broker::NetworkBrokerClient;
use server::status::ErrorChain;
use types::{AppId, ComponentId, Kind, Kinded, Secret, ServiceName};

use super::{ApplicationLock, NetworkBrokers};
use crate::{Error, registry::device::Device};

/// Activation constraints of a device without any, as in v2.
const CONSTRAINTS_DEFAULT: &str = "local";

impl NetworkBrokers {
    /// Returns true if no network brokers are configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Says that this handler handles an application. Failures are only logged: network brokers also find it in
    /// discovery.
    pub(crate) async fn register_application(&self, token: &Secret, app_id: &AppId) {
        for id in &self.ids {
            let registered = match self.client(id).await {
                Ok(Some(client)) => client.register_application(token, app_id).await,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            if let Err(error) = registered {
                let error = ErrorChain(&error);
                tracing::warn!(%id, %app_id, %error, "cannot register an application with a network broker");
            }
        }
    }

    /// Locks the devices of this application, which nobody else then changes in the network servers or in the store;
    /// [`Error::NetworkBrokersBusy`] if that takes too long.
    pub(crate) async fn lock(&self, app_id: &AppId) -> Result<ApplicationLock, Error> {
        self.locks.wait(app_id).await
    }

    /// The same for a device that joins, which cannot wait for long.
    pub(crate) async fn lock_for_join(&self, app_id: &AppId) -> Result<ApplicationLock, Error> {
        self.locks.wait_briefly(app_id).await
    }

    /// Deletes a device in one network server; it is no error if that does not know it.
    pub(super) async fn delete_at(
        &self,
        id: &ComponentId,
        client: &NetworkBrokerClient,
        token: &Secret,
        device: &Device,
    ) -> Result<(), Error> {
        let (app_eui, dev_eui) = euis(device);
        match client.delete_device(token, app_eui, dev_eui).await {
            Err(error) if error.kind() != Kind::NotFound => Err(failed(id, error)),
            _ => Ok(()),
        }
    }

    /// A client of a network broker; none if it has not announced itself.
    pub(super) async fn client(&self, id: &ComponentId) -> client::Result<Option<NetworkBrokerClient>> {
        match self.discovery.get(ServiceName::Broker, id).await {
            Ok(announcement) => NetworkBrokerClient::connect(&announcement, self.caller.clone()).map(Some),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn euis(device: &Device) -> (types::AppEui, types::DevEui) {
    (device.lorawan.app_eui, device.lorawan.dev_eui)
}

/// Returns the error for the caller of a failed call. The reason of a refusal may name the owner of the EUIs, so it
/// is only logged.
pub(super) fn failed(id: &ComponentId, reason: client::Error) -> Error {
    let kind = reason.kind();
    if matches!(kind, Kind::Denied | Kind::AlreadyExists) {
        tracing::info!(%id, error = %ErrorChain(&reason), "a network server refused a device");
        return Error::NetworkServerRefused { id: id.clone(), kind };
    }
    Error::NetworkBroker { id: id.clone(), reason }
}

/// Returns the message for a network server: all of the device but the keys with which it could read payloads.
pub(super) fn message(Device { app_id, dev_id, lorawan, .. }: &Device) -> lorawan::Device {
    let constraints = Some(lorawan.activation_constraints.as_str()).filter(|constraints| !constraints.is_empty());
    lorawan::Device {
        app_eui: lorawan.app_eui.as_bytes().to_vec(),
        dev_eui: lorawan.dev_eui.as_bytes().to_vec(),
        app_id: app_id.to_string(),
        dev_id: dev_id.to_string(),
        dev_addr: lorawan.dev_addr.map(|addr| addr.as_bytes().to_vec()).unwrap_or_default(),
        nwk_s_key: lorawan.nwk_s_key.as_ref().map(|key| key.as_bytes().to_vec()).unwrap_or_default(),
        f_cnt_up: lorawan.f_cnt_up,
        f_cnt_down: lorawan.f_cnt_down,
        disable_f_cnt_check: lorawan.disable_f_cnt_check,
        uses32_bit_f_cnt: lorawan.uses32_bit_f_cnt,
        activation_constraints: constraints.unwrap_or(CONSTRAINTS_DEFAULT).to_owned(),
        ..lorawan::Device::default()
    }
}

/// Returns true if a network server has the session that the handler has. A device that has not joined yet has none,
/// and a network server may keep the key to itself.
pub(super) fn has_session(found: &lorawan::Device, kept: &lorawan::Device) -> bool {
    let has_key = found.nwk_s_key.is_empty() || found.nwk_s_key == kept.nwk_s_key;
    kept.dev_addr.is_empty() || (found.dev_addr == kept.dev_addr && has_key)
}

/// Takes the counters over that a network server has in the same session, if they are later: it counts frames itself.
pub(super) fn count_on(message: &mut lorawan::Device, found: &lorawan::Device) {
    if has_session(found, message) {
        message.f_cnt_up = message.f_cnt_up.max(found.f_cnt_up);
        message.f_cnt_down = message.f_cnt_down.max(found.f_cnt_down);
    }
}
