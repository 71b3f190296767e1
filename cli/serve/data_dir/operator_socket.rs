//! A socket in the data directory, through which `airlock account` asks the process that runs on it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tokio::{net::UnixListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(in crate::serve) struct OperatorSocket {
    path: PathBuf,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl OperatorSocket {
    /// Listens at a path, and answers with `serve` until its token is cancelled; logs a warning and returns `None` when
    /// that fails.
    pub(in crate::serve) fn start<S: Future<Output = ()> + Send + 'static>(
        path: PathBuf,
        serve: impl FnOnce(UnixListener, CancellationToken) -> S,
    ) -> Option<Self> {
        // A crashed process may have left its socket.
        let _ = fs::remove_file(&path);
        let listener = private_listener(&path).inspect_err(|error| {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot listen: `airlock account` cannot ask this process");
        });
        let stop = CancellationToken::new();
        let serve = serve(listener.ok()?, stop.clone());
        Some(Self { path, stop, task: tokio::spawn(serve) })
    }

    /// Stops listening and finishes open requests.
    pub(in crate::serve) async fn stop(self) {
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
