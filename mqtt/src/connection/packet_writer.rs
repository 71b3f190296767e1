//! Writes packets, together where several are at hand.

use std::{io, pin::pin, task::Poll, time::Duration};

use futures::poll;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::packet::ControlPacket;

/// How much may wait to be written.
const WAITING_BYTES_MAX: usize = 8 * 1024;

/// How long closing a connection may take.
pub(super) const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Collects packets until the next one has to be waited for, and knows whether the last write was cut short.
pub(super) struct PacketWriter<W> {
    writer: W,
    /// How long one write may block.
    write_wait: Duration,
    /// Whole packets.
    waiting: Vec<u8>,
    is_partial: bool,
}

impl<W: AsyncWrite + Unpin> PacketWriter<W> {
    pub(super) fn new(writer: W, write_wait: Duration) -> Self {
        Self { writer, write_wait, waiting: Vec::new(), is_partial: false }
    }

    /// Accepts a packet, and writes it at the latest in [`Self::flush_before`].
    pub(super) async fn write(&mut self, packet: &ControlPacket) -> io::Result<()> {
        packet.append_to(&mut self.waiting);
        if self.waiting.len() < WAITING_BYTES_MAX { Ok(()) } else { self.flush().await }
    }

    /// Waits for `next`, which may read the next packet, after writing the packets before it. If `next` is ready at
    /// once, they wait for further ones.
    pub(super) async fn flush_before<T>(&mut self, next: impl Future<Output = T>) -> io::Result<T> {
        let mut next = pin!(next);
        if let Poll::Ready(next) = poll!(next.as_mut()) {
            return Ok(next);
        }
        self.flush().await?;
        Ok(next.await)
    }

    /// Writes a last packet, unless it would land in the middle of another, and closes.
    pub(super) async fn close(&mut self, last: Option<ControlPacket>) {
        let close = async {
            if !self.is_partial {
                last.into_iter().for_each(|packet| packet.append_to(&mut self.waiting));
                self.flush().await?;
            }
            self.writer.shutdown().await
        };
        // It does not matter whether a peer that is already gone receives this.
        _ = timeout(CLOSE_WAIT, close).await;
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.is_partial = true;
        let write = async {
            self.writer.write_all(&self.waiting).await?;
            self.writer.flush().await
        };
        timeout(self.write_wait, write).await??;
        self.is_partial = false;
        // A connection that is idle, as most are, keeps no memory for writing.
        self.waiting = Vec::new();
        Ok(())
    }
}
