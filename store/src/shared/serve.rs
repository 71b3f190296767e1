//! The side that holds the store: answers whoever comes to the socket.

use std::{future::Future, io, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    task::JoinSet,
};

use super::wire::{Failure, Question, read, write};
use crate::{Error, Hint, Store};

/// How many may be answered at once; more wait.
const CONNECTIONS_MAX: usize = 16;
/// How long nobody is let in after that failed.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Answers at `listener` for `store` until `stop`, and has let go of the store when it returns.
///
/// Whoever can open the socket can do everything: it belongs into a folder of its user alone.
pub async fn serve(listener: UnixListener, store: Arc<dyn Store>, stop: impl Future<Output = ()>) {
    let mut answering = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let has_room = answering.len() < CONNECTIONS_MAX;
        tokio::select! {
            () = &mut stop => break,
            Some(_) = answering.join_next() => {}
            accepted = listener.accept(), if has_room => match accepted {
                Ok((connection, _)) => _ = answering.spawn(answer(connection, Arc::clone(&store))),
                // Too many open files, mostly: that passes.
                Err(error) => {
                    tracing::warn!(%error, "failed to let a command ask the store");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    answering.shutdown().await;
}

/// Answers one who came, until they go; whoever goes away in the middle has no use for an answer.
async fn answer(connection: UnixStream, store: Arc<dyn Store>) {
    let _ = answer_all(connection, store.as_ref()).await;
}

async fn answer_all(mut connection: UnixStream, store: &dyn Store) -> io::Result<()> {
    loop {
        let to = &mut connection;
        match read(to).await? {
            Question::Get(keys) => reply(to, store.get(&keys).await).await?,
            Question::List(prefix, after, limit) => {
                reply(to, store.list(&prefix, after.as_ref(), limit).await).await?;
            }
            Question::Page(prefix, offset, limit) => reply(to, store.page(&prefix, offset, limit).await).await?,
            Question::Commit(batch) => reply(to, store.commit(batch).await).await?,
            Question::TakeToken(key, rate) => reply(to, store.take_token(&key, rate).await).await?,
            Question::Reserve(queue, consumer, count, time) => {
                reply(to, store.reserve(&queue, &consumer, count, time).await).await?;
            }
            Question::Ack(queue, lease) => reply(to, store.ack(&queue, &lease).await).await?,
            Question::Notify(channel, Hint::Message(message)) => {
                reply(to, store.notify(&channel, message).await).await?;
            }
            Question::Notify(_, Hint::Missed) => return Err(io::ErrorKind::InvalidData.into()),
            Question::Watch(channel) => return tell(to, store, &channel).await,
            Question::Check => reply(to, store.check().await).await?,
        }
    }
}

async fn reply<T: Serialize>(to: &mut UnixStream, result: Result<T, Error>) -> io::Result<()> {
    write(to, &result.map_err(Failure::from)).await
}

/// Passes hints on until nobody listens.
async fn tell(to: &mut UnixStream, store: &dyn Store, channel: &str) -> io::Result<()> {
    let mut watch = store.watch(channel).map_err(io::Error::other)?;
    let (mut from, mut to) = to.split();
    loop {
        tokio::select! {
            // Nothing comes from there any more but its end.
            gone = from.read_u8() => return gone.map(drop),
            hint = watch.next() => match hint {
                Some(hint) => write(&mut to, &hint).await?,
                None => return Ok(()),
            },
        }
    }
}
