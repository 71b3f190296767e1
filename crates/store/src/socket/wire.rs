//! The protocol of the socket: JSON frames with a length of four bytes in front.

use std::io;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Batch, Error, ErrorKind, Key, Rate, Tag, UsageCursor};

/// Maximum size of a frame, in bytes: the largest batch, with its values in base64.
const FRAME_BYTES_MAX: u32 = 32 << 20;

/// A call of the store; the response is a `Result` with a [`Failure`]. That to `Snapshot` is the last version, or a
/// failure, and then the parts, each as such a result, up to the end or a failure.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    Get(Vec<Key>),
    List(Key, Option<Key>, usize),
    Page(Key, usize, usize),
    Commit(Batch),
    TakeTokens(Key, Rate, u32),
    Usage(Option<UsageCursor>),
    UsageOf(Vec<Tag>),
    Check,
    Snapshot,
}

/// The kind and text of an error, for the client.
#[derive(Serialize, Deserialize)]
pub(super) struct Failure {
    kind: ErrorKind,
    text: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { kind: error.kind(), text: error.to_string() }
    }
}

impl From<Failure> for Error {
    fn from(Failure { kind, text }: Failure) -> Self {
        Self::Elsewhere { kind, text }
    }
}

pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let frame = serde_json::to_vec(message)?;
    let length = u32::try_from(frame.len()).ok().filter(|length| *length <= FRAME_BYTES_MAX);
    to.write_u32(length.ok_or(io::ErrorKind::InvalidInput)?).await?;
    to.write_all(&frame).await?;
    to.flush().await
}

pub(super) async fn read<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = from.read_u32().await?;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; length as usize];
    from.read_exact(&mut frame).await?;
    Ok(serde_json::from_slice(&frame)?)
}
