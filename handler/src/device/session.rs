//! Sessions of devices: what joining changes about them, and the nonces that count once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Batch, Commit, Key, Tag};
use types::{AppId, AppNonce, AppSKey, DevAddr, DevEui, DevId, DevNonce, NwkSKey, Timestamp};

use super::{
    devices::{Device, Devices, TRIES_MAX, device_key, eui_key, not_found},
    record,
};
use crate::{Error, application};

/// The nonces with which a device has joined under its key; there are at most 65 536 of either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Nonces {
    /// Those that it made up.
    pub(crate) dev: BTreeSet<DevNonce>,
    /// Those that it was told.
    pub(crate) app: BTreeSet<AppNonce>,
}

/// What a device that joins gets, and the nonces that make it different from every other time.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) dev_nonce: DevNonce,
    pub(crate) app_nonce: AppNonce,
    pub(crate) dev_addr: DevAddr,
    pub(crate) nwk_s_key: NwkSKey,
    pub(crate) app_s_key: AppSKey,
    /// When the device asked for it.
    pub(crate) began: Timestamp,
}

impl Devices {
    /// Begins the session that `begin` makes of a device and the nonces that it has used.
    ///
    /// Session and nonces are kept in one commit, so that of several joins with one nonce one succeeds.
    pub(crate) async fn begin_session(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        begin: impl Fn(&Device, &Nonces) -> Result<Session, Error>,
    ) -> Result<(Device, Session), Error> {
        let keys = [device_key(app_id, dev_id)?, nonces_key(app_id, dev_id)?];
        for _ in 0..TRIES_MAX {
            let mut found = self.store.get(&keys).await?.into_iter();
            let entry = found.next().flatten().ok_or_else(|| not_found(app_id, dev_id))?;
            let used = found.next().flatten();
            let mut device = record::read(&self.vault, &entry.value)?;
            let mut nonces: Nonces =
                used.as_ref().map(|used| serde_json::from_slice(&used.value)).transpose()?.unwrap_or_default();
            let session = begin(&device, &nonces)?;
            device.begin(&session);
            nonces.dev.insert(session.dev_nonce);
            nonces.app.insert(session.app_nonce);
            let batch = Batch::new().expect(entry.key.clone(), entry.version);
            let [_, nonces_key] = &keys;
            let batch = match used {
                Some(used) => batch.expect(used.key, used.version),
                None => batch.expect_absent(nonces_key.clone()),
            };
            let batch = batch
                .put(entry.key, record::write(&self.vault, &device)?)
                .put(nonces_key.clone(), serde_json::to_vec(&nonces)?);
            if self.store.commit(batch).await? == Commit::Done {
                return Ok((device, session));
            }
        }
        Err(Error::Conflict { what: format!("device {app_id}:{dev_id}") })
    }

    /// Which device has the EUIs of this one.
    pub(crate) async fn holder(&self, device: &Device) -> Result<Option<DevId>, Error> {
        let Some(key) = eui_key(device)? else { return Ok(None) };
        let found = self.store.get(&[key]).await?.into_iter().next().flatten();
        let parse = |entry: store::Entry| String::from_utf8_lossy(&entry.value).parse();
        Ok(found.map(parse).transpose()?)
    }
}

impl Device {
    fn begin(&mut self, session: &Session) {
        let lorawan = &mut self.lorawan;
        lorawan.dev_addr = Some(session.dev_addr);
        lorawan.nwk_s_key = Some(session.nwk_s_key.clone());
        lorawan.app_s_key = Some(session.app_s_key.clone());
        (lorawan.f_cnt_up, lorawan.f_cnt_down) = (0, 0);
        lorawan.last_seen = session.began.as_nanos();
    }

    /// Whether it stands for devices that are registered when they join.
    pub(crate) fn is_template(&self) -> bool {
        self.lorawan.dev_eui.is_zero()
    }

    /// The device that is registered from this template when one with this EUI joins.
    pub(crate) fn registered_on_join(&self, dev_eui: DevEui, now: Timestamp) -> Result<Self, Error> {
        let mut device = self.clone();
        device.dev_id = format!("{}-{dev_eui}", self.dev_id).to_lowercase().parse()?;
        device.description = format!("Registered on join on {}", now.to_short());
        device.lorawan.dev_eui = dev_eui;
        Ok(device)
    }
}

/// Where the nonces of a device lie.
pub(super) fn nonces_key(app_id: &AppId, dev_id: &DevId) -> Result<Key, Error> {
    Ok(Key::new(&Tag::application(app_id.as_str())?, &format!("{}nonces/{dev_id}", application::PREFIX))?)
}
