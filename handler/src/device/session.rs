//! Sessions of devices: what a join changes in the store, and the nonces that may be used once.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Batch, Commit};
use types::{AppId, AppNonce, AppSKey, DevAddr, DevId, DevNonce, NwkSKey, Timestamp};

use super::{
    devices::{CHANGE_ATTEMPTS_MAX, Devices, eui_key},
    model::Device,
    record,
};
use crate::{Error, application::store_keys};

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
        app_id: &AppId,
        dev_id: &DevId,
        begin: impl Fn(&Device, &Nonces) -> Result<Session, Error>,
    ) -> Result<(Device, Session), Error> {
        let keys = [store_keys::device(app_id, dev_id)?, store_keys::nonces(app_id, dev_id)?];
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            let mut found = self.store.get(&keys).await?.into_iter();
            let entry = found.next().flatten().ok_or_else(|| Error::device_not_found(app_id, dev_id))?;
            let used = found.next().flatten();
            let mut device = record::read(&self.sealer, &entry.value)?;
            let mut nonces: Nonces =
                used.as_ref().map(|used| serde_json::from_slice(&used.value)).transpose()?.unwrap_or_default();
            let session = begin(&device, &nonces)?;
            device.begin(&session);
            nonces.dev.insert(session.dev_nonce);
            nonces.app.insert(session.app_nonce);
            let [_, nonces_key] = keys.clone();
            let batch = Batch::new().expect(entry.key.clone(), entry.version);
            let batch = match used {
                Some(used) => batch.expect(used.key, used.version),
                None => batch.expect_absent(nonces_key.clone()),
            };
            let batch = batch
                .put(entry.key, record::write(&self.sealer, &device)?)
                .put(nonces_key, serde_json::to_vec(&nonces)?);
            if self.store.commit(batch).await? == Commit::Done {
                return Ok((device, session));
            }
        }
        Err(Error::device_conflict(app_id, dev_id))
    }

    pub(crate) async fn find_by_euis(&self, device: &Device) -> Result<Option<DevId>, Error> {
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
        lorawan.last_seen = session.started_at.as_nanos();
    }
}
