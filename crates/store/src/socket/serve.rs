//! The server side of the socket.

use std::{future::Future, io, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinSet,
};

use super::wire::{Failure, Request, read, write};
use crate::{Error, Snapshot, Store, Version, snapshot::Part};

/// Maximum number of connections; more wait to be accepted.
const CONNECTIONS_MAX: usize = 16;
/// Pause after accepting failed.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves `store` on `listener` until `stop`; no reference to the store is left when it returns.
///
/// Any client can do everything: put the socket in a directory that only its owner can access.
pub async fn serve(listener: UnixListener, store: Arc<dyn Store>, stop: impl Future<Output = ()>) {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let has_room = connections.len() < CONNECTIONS_MAX;
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if has_room => match accepted {
                Ok((connection, _)) => _ = connections.spawn(serve_connection(connection, Arc::clone(&store))),
                // Usually too many open files, which passes.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the store");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

/// Serves one connection until it closes. A client that disconnects early needs no response, so errors are ignored.
async fn serve_connection(connection: UnixStream, store: Arc<dyn Store>) {
    let _ = serve_calls(connection, store.as_ref()).await;
}

async fn serve_calls(mut connection: UnixStream, store: &dyn Store) -> io::Result<()> {
    loop {
        let to = &mut connection;
        match read(to).await? {
            Request::Get(keys) => respond(to, store.get(&keys).await).await?,
            Request::List(prefix, after, limit) => {
                respond(to, store.list(&prefix, after.as_ref(), limit).await).await?;
            }
            Request::Page(prefix, offset, limit) => respond(to, store.page(&prefix, offset, limit).await).await?,
            Request::Commit(batch) => respond(to, store.commit(batch).await).await?,
            Request::TakeTokens(key, rate, wanted) => respond(to, store.take_tokens(&key, rate, wanted).await).await?,
            Request::Usage(from) => respond(to, store.usage(from.as_ref()).await).await?,
            Request::UsageOf(tags) => respond(to, store.usage_of(&tags).await).await?,
            Request::Check => respond(to, store.check().await).await?,
            Request::Snapshot => send_snapshot(to, store.snapshot().await).await?,
        }
    }
}

async fn send_snapshot(to: &mut UnixStream, snapshot: Result<Snapshot, Error>) -> io::Result<()> {
    let mut snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => return respond::<Version>(to, Err(error)).await,
    };
    respond(to, Ok(snapshot.last_version())).await?;
    loop {
        let part = snapshot.next().await.map(|entries| entries.map_or(Part::End, Part::Entries));
        let is_last = !matches!(part, Ok(Part::Entries(_)));
        respond(to, part).await?;
        if is_last {
            return Ok(());
        }
    }
}

async fn respond<T: Serialize>(to: &mut UnixStream, result: Result<T, Error>) -> io::Result<()> {
    write(to, &result.map_err(Failure::from)).await
}
