//! Sessions of devices: what a join changes in the store, and the nonces that may be used once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Batch, Commit};
use types::{AppNonce, AppSKey, DevAddr, DevId, DevNonce, DevicePath, NwkSKey, Timestamp};

use super::{
    devices::{CHANGE_ATTEMPTS_MAX, Devices, eui_key},
    model::{Device, record},
};
use crate::{Error, registry::application::store_keys};

/// The nonces with which a device has joined under its current key, at most 65,536 of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Nonces {
    /// Those that the device chose.
    pub(crate) dev: BTreeSet<DevNonce>,
    /// Those that the handler chose.
    pub(crate) app: BTreeSet<AppNonce>,
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) dev_nonce: DevNonce,
    pub(crate) app_nonce: AppNonce,
    pub(crate) dev_addr: DevAddr,
    pub(crate) nwk_s_key: NwkSKey,
    pub(crate) app_s_key: AppSKey,
    pub(crate) started_at: Timestamp,
}

impl Devices {
    /// Starts the session that `begin` returns for a device and the nonces it has used.
    ///
    /// One commit stores session and nonces, so of several joins with the same nonce only one succeeds.
    pub(crate) async fn begin_session(
        &self,
        path: DevicePath<'_>,
        begin: impl Fn(&Device, &Nonces) -> Result<Session, Error>,
    ) -> Result<(Device, Session), Error> {
        let begun = store::retry(CHANGE_ATTEMPTS_MAX, || self.try_begin_session(path, &begin)).await?;
        begun.ok_or_else(|| Error::device_conflict(path))
    }

    async fn try_begin_session(
        &self,
        path: DevicePath<'_>,
        begin: impl Fn(&Device, &Nonces) -> Result<Session, Error>,
    ) -> Result<Option<(Device, Session)>, Error> {
        let keys = [store_keys::device(path)?, store_keys::nonces(path)?];
        let [entry, used] = self.store.get_array(&keys).await?;
        let entry = entry.ok_or_else(|| Error::device_not_found(path))?;
        let mut device = record::read(&self.sealer, &entry.value)?;
        let nonces = used.as_ref().map(|used| serde_json::from_slice(&used.value)).transpose()?;
        let mut nonces: Nonces = nonces.unwrap_or_default();
        let session = begin(&device, &nonces)?;
        device.begin(&session);
        nonces.dev.insert(session.dev_nonce);
        nonces.app.insert(session.app_nonce);
        let [key, nonces_key] = keys;
        let batch = Batch::new()
            .expect(key.clone(), entry.version)
            .expect_entry(&nonces_key, used.as_ref())
            .put(key, record::write(&self.sealer, &device)?)
            .put(nonces_key, serde_json::to_vec(&nonces)?)
            .delete(store_keys::frame_counters(path)?);
        Ok((self.store.commit(batch).await? == Commit::Done).then_some((device, session)))
    }

    pub(crate) async fn find_by_euis(&self, device: &Device) -> Result<Option<DevId>, Error> {
        let Some(key) = eui_key(device)? else { return Ok(None) };
        let [found] = self.store.get_array(&[key]).await?;
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
        lorawan.last_seen = session.started_at.as_nanos();
    }
}
