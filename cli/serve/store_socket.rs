//! Shares this process's embedded store with `airlock account` through a socket in the data directory.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use store::{Store, socket};
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::data_dir::DataDir;

pub(super) struct StoreSocket {
    path: PathBuf,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl StoreSocket {
    /// Listens in the data directory; logs a warning and returns `None` when that fails.
    pub(super) fn start(data_dir: &DataDir, store: &Arc<dyn Store>) -> Option<Self> {
        let path = data_dir.store_socket();
        // A crashed process may have left its socket. No running one listens there, because we hold the store's lock.
        let _ = fs::remove_file(&path);
        let listener = private_listener(&path).inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot share the store: `airlock account` works only while this is stopped");
        });
        let stop = CancellationToken::new();
        let serve = socket::serve(listener.ok()?, Arc::clone(store), stop.clone().cancelled_owned());
        Some(Self { path, stop, task: tokio::spawn(serve) })
    }

    /// Stops listening and finishes open requests.
    pub(super) async fn stop(self) {
        // A socket that cannot be removed does no harm: the next start removes it.
        let _ = fs::remove_file(&self.path);
        self.stop.cancel();
        // The task fails only by a panic, which has been logged.
        let _ = self.task.await;
    }
}

/// Binds a socket that only this user can connect to, whatever the directory's permissions.
fn private_listener(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
