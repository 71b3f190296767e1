//! The embedded store of this process, shared with an operator's commands through a socket in the data folder.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use store::{Store, shared};
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::data_dir::Folder;

/// A store that is shared; it goes on until it is stopped.
pub(super) struct Sharing {
    path: PathBuf,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Sharing {
    /// Listens in the data folder; none where that cannot be, which the log says.
    pub(super) fn start(folder: &Folder, store: &Arc<dyn Store>) -> Option<Self> {
        let path = folder.socket();
        // A process that crashed left it; none that lives listens there, because the store is ours.
        let _ = fs::remove_file(&path);
        let listener = private_listener(&path).inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%path, %error, "failed to share the store: `airlock account` works only while this is stopped");
        });
        let stop = CancellationToken::new();
        let serve = shared::serve(listener.ok()?, Arc::clone(store), stop.clone().cancelled_owned());
        Some(Self { path, stop, task: tokio::spawn(serve) })
    }

    /// Ends it; whoever comes from now on opens the store by itself once it is closed.
    pub(super) async fn stop(self) {
        // Nothing is lost when it stays: the next start removes it.
        let _ = fs::remove_file(&self.path);
        self.stop.cancel();
        // It cannot fail but by a mistake of ours, which is logged where it happens.
        let _ = self.task.await;
    }
}

/// A socket for this user alone, whatever the folder lets others do.
fn private_listener(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
