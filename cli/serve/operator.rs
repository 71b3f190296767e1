//! The account service for commands on the server's own store: opened, but not served.

use std::sync::Arc;

use account::{Account, Keys};
use anyhow::Context;
use server::system::{OsRandom, SystemClock};

use super::{folder::Folder, ground::open_store};
use crate::settings::Settings;

/// Opens the account service on the store and with the key file that `airlock serve` would use.
///
/// With the embedded store only one process can; the others are told so.
pub(crate) async fn open_account(settings: Settings) -> anyhow::Result<Account> {
    let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
    let folder = Folder::open(&settings.data_dir)?;
    let store = open_store(&settings, &folder, clock.clone()).await.context("cannot open the server's own store")?;
    let keys = Keys::open(&folder.seal(), random.as_ref())?;
    Ok(Account::open(settings.account, keys, store, clock, random).await?)
}
