//! Operations on the server's own store, without serving it.

use std::{path::Path, sync::Arc};

use account::{Account, Environment};
use anyhow::Context;
use handler::{device::Devices, sealer::Sealer};
use server::{
    audit::AuditLog,
    seal::{KeyOwner, SealingKeys},
    store_mark::{Durability, OlderStore, StoreMark, StoreMarkError},
    system::{OsRandom, SystemClock},
};
use store::{SocketStore, Store};

use super::{
    context::{durability, mark_file, open_store},
    data_dir::DataDir,
};
use crate::settings::Settings;

/// The object of an operator's command, and the mark to advance when it is done: `None` if the store went back, so that
/// the server notices, too.
type Opened<T> = (T, Option<StoreMark>);

/// Opens the account service on the store and key file that `airlock serve` would use.
pub(crate) async fn open_account(settings: Settings, audit: AuditLog) -> anyhow::Result<Opened<Account>> {
    let data_dir = DataDir::open(&settings.data_dir)?;
    let (store, mark) = open_shared_store(&settings, &data_dir).await?;
    let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
    let keys = SealingKeys::load_or_create(KeyOwner::Account, &data_dir.account_key(), random.as_ref())?;
    Ok((Account::open(settings.account, keys, Environment { store, clock, random, audit }).await?, mark))
}

/// Opens the account service on the store of the server that runs here, for a look; none if there is none.
pub(crate) async fn open_running_account(settings: Settings) -> anyhow::Result<Option<Account>> {
    let data_dir = DataDir::at(&settings.data_dir);
    let Some(store) = connect_to_server(&data_dir).await else { return Ok(None) };
    let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
    let keys = SealingKeys::load_or_create(KeyOwner::Account, &data_dir.account_key(), random.as_ref())?;
    let audit = AuditLog::without_file(clock.clone());
    Ok(Some(Account::open(settings.account, keys, Environment { store, clock, random, audit }).await?))
}

/// Returns true if the account service has run on this data directory.
pub(crate) fn serves_accounts(settings: &Settings) -> bool {
    DataDir::at(&settings.data_dir).account_key().exists()
}

/// Opens the devices of the handler in the same way as the account service.
pub(crate) async fn open_devices(settings: &Settings) -> anyhow::Result<Opened<Devices>> {
    let data_dir = DataDir::open(&settings.data_dir)?;
    let (store, mark) = open_shared_store(settings, &data_dir).await?;
    let keys = SealingKeys::load_or_create(KeyOwner::Handler, &data_dir.handler_key(), &OsRandom)?;
    let sealer = Sealer::for_store(keys, store.as_ref(), Arc::new(OsRandom)).await?;
    Ok((Devices::new(store, sealer, Arc::new(SystemClock)), mark))
}

/// Only one process can open the embedded store. When a server has it open, the server is asked to share it.
pub(super) async fn open_shared_store(
    settings: &Settings,
    data_dir: &DataDir,
) -> anyhow::Result<Opened<Arc<dyn Store>>> {
    let store = match open_store(settings, data_dir, Arc::new(SystemClock)).await.map(|opened| opened.store) {
        Err(error) if is_locked(&error) => connect_to_server(data_dir).await.ok_or(error),
        result => result,
    };
    let store = store.context("cannot open the server's store")?;
    let marked = (store.clone(), durability(settings));
    let mark = match open_mark(&mark_file(settings, data_dir), marked, OlderStore::Refuse).await {
        Err(error @ StoreMarkError::Older { .. }) => {
            tracing::warn!("{error}");
            None
        }
        mark => Some(mark?),
    };
    Ok((store, mark))
}

/// Marks the store as the newest that this data directory knows.
pub(super) async fn accept_older_store(settings: &Settings, audit: &AuditLog) -> anyhow::Result<()> {
    let data_dir = DataDir::open(&settings.data_dir)?;
    let store = open_store(settings, &data_dir, Arc::new(SystemClock)).await?.store;
    let marked = (store, durability(settings));
    let accepted =
        async { open_mark(&mark_file(settings, &data_dir), marked, OlderStore::Accept).await?.advance().await };
    let change = audit.change("older store accepted", &"operator", &settings.data_dir.display())?;
    Ok(change.run(accepted).await?)
}

async fn open_mark(
    file: &Path,
    store: (Arc<dyn Store>, Durability),
    older: OlderStore,
) -> Result<StoreMark, StoreMarkError> {
    StoreMark::open(file, store, &OsRandom, older).await
}

fn is_locked(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(store::Error::Locked { .. }))
}

/// The store of the server that has it open; `None` when the server does not share it.
async fn connect_to_server(data_dir: &DataDir) -> Option<Arc<dyn Store>> {
    let store = SocketStore::connect(&data_dir.store_socket()).await.ok()?;
    Some(Arc::new(store))
}
