//! The holders of EUIs: for each pair of AppEUI and DevEUI the application that has a device with it.
//!
//! `registry/device/eui_claim.rs` decides who becomes the holder.

use std::future::ready;

use futures::{StreamExt, TryStreamExt, stream};
use server::status::ErrorChain;
use store::{Batch, Entry, Key, Store};
use types::AppId;

use super::store_keys;
use crate::Error;

/// Maximum number of pairs that are released at the same time, for the store to write them together.
const RELEASES_MAX: usize = 64;

/// The records among `keys` that name this application. Read them before its devices give up their EUIs.
pub(crate) async fn held_by(app_id: &AppId, keys: &[Key], store: &dyn Store) -> Result<Vec<Entry>, Error> {
    let found = store.get(keys).await?.into_iter().flatten();
    Ok(found.filter(|holder| holder.value == app_id.as_str().as_bytes()).collect())
}

/// Deletes the records of holders that have given up their EUIs, except those that somebody has claimed since.
///
/// A failure is only logged: what remains does not keep others from claiming the EUIs.
pub(crate) async fn release(holders: Vec<Entry>, store: &dyn Store) {
    let batch = |holder: Entry| Batch::new().expect(holder.key.clone(), holder.version).delete(holder.key);
    let releases = stream::iter(holders).map(|holder| store.commit(batch(holder)));
    let released = releases.buffer_unordered(RELEASES_MAX).try_for_each(|_| ready(Ok(()))).await;
    if let Err(error) = released {
        tracing::warn!(error = %ErrorChain(&error), "cannot delete the records of released EUIs");
    }
}

/// The keys of the holders of the EUIs in these keys of an application's records.
pub(super) fn keys_of(records: &[Key]) -> Result<Vec<Key>, Error> {
    records.iter().filter_map(store_keys::holder_of).collect()
}
