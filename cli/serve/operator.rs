//! The account service for commands on the server's own store: opened, but not served.

use std::sync::Arc;

use account::Account;
use anyhow::Context;
use server::{
    seal::{Keys, Owner},
    system::{OsRandom, SystemClock},
};
use store::{Shared, Store};

use super::{context::open_store, data_dir::Folder};
use crate::settings::Settings;

/// Opens the account service on the store and with the key file that `airlock serve` would use.
///
/// The embedded store can be open in one process only: where that is the server, it is asked.
pub(crate) async fn open_account(settings: Settings) -> anyhow::Result<Account> {
    let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
    let folder = Folder::open(&settings.data_dir)?;
    let store = match open_store(&settings, &folder, clock.clone()).await {
        Err(error) if is_locked(&error) => ask_server(&folder).await.ok_or(error),
        opened => opened,
    };
    let store = store.context("cannot open the server's own store")?;
    let keys = Keys::open(Owner::Account, &folder.seal(), random.as_ref())?;
    Ok(Account::open(settings.account, keys, store, clock, random).await?)
}

fn is_locked(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::Locked { .. }))
}

/// The store of the server that holds it; none when it does not share it.
async fn ask_server(folder: &Folder) -> Option<Arc<dyn Store>> {
    let shared = Shared::connect(&folder.socket()).await.ok()?;
    Some(Arc::new(shared))
}
