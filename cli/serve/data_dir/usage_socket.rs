//! Reports the owners' usage of this process's budgets to `airlock account usage`, through a socket.

use std::{io, path::Path, time::Duration};

use anyhow::Context;
use server::ledger::{BudgetUsage, Ledger, Owner};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::DataDir;
use crate::settings::Settings;

/// Maximum time for one question and its answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a question, in bytes.
const QUESTION_BYTES_MAX: u64 = 1024;

/// Answers one question after the other until `stop`.
pub(in crate::serve) async fn serve(listener: UnixListener, ledger: Ledger, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let answered = async { answer(accepted?.0, &ledger).await };
        // Whoever asks says so if there is no answer.
        match timeout(TIMEOUT, answered).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot tell what owners use of budgets"),
            Err(_) => tracing::debug!("nobody has read what owners use of budgets"),
        }
    }
}

async fn answer(mut connection: UnixStream, ledger: &Ledger) -> io::Result<()> {
    let (read, mut write) = connection.split();
    let mut question = String::new();
    BufReader::new(read.take(QUESTION_BYTES_MAX)).read_line(&mut question).await?;
    let owner: Option<Owner> = serde_json::from_str(&question)?;
    write.write_all(&serde_json::to_vec(&ledger.usage(owner.as_ref()))?).await
}

/// Asks the server that runs on the data directory of these settings, for one owner or all.
pub(crate) async fn running_usage(settings: &Settings, owner: Option<&Owner>) -> anyhow::Result<Vec<BudgetUsage>> {
    let path = DataDir::at(&settings.data_dir).usage_socket();
    let asked = timeout(TIMEOUT, ask(&path, owner)).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut));
    asked.and_then(|answer| answer).with_context(|| {
        format!(
            "cannot ask the server that runs on {}: start it, or name the data directory of one that runs with --data",
            settings.data_dir.display()
        )
    })
}

async fn ask(path: &Path, owner: Option<&Owner>) -> io::Result<Vec<BudgetUsage>> {
    let mut connection = UnixStream::connect(path).await?;
    connection.write_all(format!("{}\n", serde_json::to_string(&owner)?).as_bytes()).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    Ok(serde_json::from_slice(&answer)?)
}
