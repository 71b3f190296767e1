//! A client's stream as packets in both directions, in one task: neither direction waits for the other.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::{Instant, timeout},
};

use crate::packet::{ControlPacket, PacketError};

/// Bytes that may wait to be written before nothing more is read or delivered. A single packet may be larger.
const UNWRITTEN_BYTES_MAX: usize = 16 * 1024;

/// Size of one read. On the stack, so that an idle client has no buffer.
const READ_BYTES: usize = 4 * 1024;

/// Time that closing a connection may take.
pub(super) const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of bytes read from a client while its connection is closed, so that it sees the reason.
const LINGER_BYTES_MAX: u64 = 1024 * 1024;

/// Decodes what a client sends, and writes what it gets, without waiting for either.
pub(crate) struct PacketStream<S> {
    stream: S,
    arrived: BytesMut,
    /// Whole packets; the first `written` bytes are gone.
    unwritten: Vec<u8>,
    written: usize,
    /// Time when the client stopped taking the unwritten bytes; none while it takes them.
    blocked_since: Option<Instant>,
    /// A client that no longer reads may still have sent something.
    is_write_broken: bool,
}

/// Progress in one of the two directions.
pub(crate) enum Progress {
    /// A packet arrived.
    Packet(ControlPacket),
    /// Everything was written.
    Written,
}

/// Errors of reading a packet.
pub(crate) enum StreamError {
    /// The client closed the connection, or it broke.
    Closed,
    Packet(PacketError),
}

impl<S: AsyncRead + AsyncWrite + Unpin> PacketStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        let (arrived, unwritten) = (BytesMut::new(), Vec::new());
        Self { stream, arrived, unwritten, written: 0, blocked_since: None, is_write_broken: false }
    }

    /// Returns the buffer of packets to be written.
    pub(crate) fn unwritten(&mut self) -> &mut Vec<u8> {
        &mut self.unwritten
    }

    pub(crate) fn has_room(&self) -> bool {
        self.unwritten.len() < UNWRITTEN_BYTES_MAX
    }

    /// Returns the time for which the client has taken no bytes.
    pub(crate) fn blocked_for(&self) -> Duration {
        self.blocked_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Writes what there is, and reads unless too much of that is waiting. Can be cancelled without losing anything.
    pub(crate) async fn progress(&mut self, packet_bytes_max: usize) -> Result<Progress, StreamError> {
        poll_fn(|context| self.poll_progress(context, packet_bytes_max)).await
    }

    fn poll_progress(
        &mut self,
        context: &mut Context<'_>,
        packet_bytes_max: usize,
    ) -> Poll<Result<Progress, StreamError>> {
        if !self.unwritten.is_empty() {
            match self.poll_write(context) {
                Poll::Ready(result) => {
                    self.is_write_broken |= result.is_err();
                    self.blocked_since = None;
                    // A connection that is idle, as most are, keeps no memory for writing.
                    (self.unwritten, self.written) = (Vec::new(), 0);
                    return Poll::Ready(Ok(Progress::Written));
                }
                Poll::Pending if !self.has_room() => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        loop {
            let packet = ControlPacket::take_from(&mut self.arrived, packet_bytes_max).map_err(StreamError::Packet)?;
            if self.arrived.is_empty() {
                self.arrived = BytesMut::new();
            }
            if let Some(packet) = packet {
                return Poll::Ready(Ok(Progress::Packet(packet)));
            }
            if ready!(self.poll_read(context)).unwrap_or(0) == 0 {
                return Poll::Ready(Err(StreamError::Closed));
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [0; READ_BYTES];
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.arrived.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_write_broken {
            return Poll::Ready(Ok(()));
        }
        let mut stream = Pin::new(&mut self.stream);
        while self.written < self.unwritten.len() {
            match stream.as_mut().poll_write(context, &self.unwritten[self.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.blocked_since = None;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.blocked_since.get_or_insert_with(Instant::now);
                    return Poll::Pending;
                }
            }
        }
        let flushed = stream.poll_flush(context);
        if flushed.is_pending() {
            self.blocked_since.get_or_insert_with(Instant::now);
        }
        flushed
    }

    /// Writes a last packet and closes, unless the client is not reading what was sent before.
    pub(crate) async fn close(&mut self, last: Option<ControlPacket>) {
        let close = async {
            if self.written == 0 && !self.is_write_broken {
                last.into_iter().for_each(|packet| packet.append_to(&mut self.unwritten));
                self.stream.write_all(&self.unwritten).await?;
                self.stream.flush().await?;
            }
            self.stream.shutdown().await
        };
        // It does not matter whether a peer that is already gone receives this.
        _ = timeout(CLOSE_WAIT, close).await;
    }

    /// Reads what the client still sends: a socket that is closed with unread data discards what was written.
    pub(crate) async fn linger(&mut self) {
        let mut rest = [0; 512];
        let mut left = LINGER_BYTES_MAX;
        let read = async {
            while let Ok(count @ 1..) = self.stream.read(&mut rest).await
                && left > 0
            {
                left = left.saturating_sub(count as u64);
            }
        };
        _ = timeout(CLOSE_WAIT, read).await;
    }
}
