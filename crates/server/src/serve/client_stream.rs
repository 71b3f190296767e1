//! The stream of a client, which is cut if it shows no protocol, floods, or does not read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::control_frames::ControlFrames;

/// The first bytes of every HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream with limits that hyper does not have.
///
/// hyper-util waits without a limit until a client has shown whether it speaks HTTP/1.1 or HTTP/2, and hyper for one to
/// read what it is sent. Nor does hyper count the frames that ask for nothing.
pub(super) struct ClientStream<S> {
    stream: S,
    protocol: Protocol,
    /// How long the client may not read anything while something is to be written.
    unread_timeout: Duration,
    unread: Option<Pin<Box<Sleep>>>,
}

enum Protocol {
    /// It is not known yet, and so many bytes of the preface have come.
    Unknown {
        seen: usize,
        deadline: Pin<Box<Sleep>>,
    },
    Http1,
    Http2(ControlFrames),
}

impl<S> ClientStream<S> {
    /// A stream whose client must show its protocol within `head_timeout`.
    pub(super) fn new(stream: S, head_timeout: Duration, unread_timeout: Duration) -> Self {
        let protocol = Protocol::Unknown { seen: 0, deadline: Box::pin(sleep(head_timeout)) };
        Self { stream, protocol, unread_timeout, unread: None }
    }

    /// Notes that something was written, or has to wait for the client.
    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.unread = None;
            return written;
        }
        let deadline = self.unread.get_or_insert_with(|| Box::pin(sleep(self.unread_timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Protocol::Http2(frames), Poll::Ready(Ok(bytes))) = (&mut self.protocol, written) {
            frames.note_written(*bytes);
        }
    }
}

impl Protocol {
    fn inspect(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let Self::Unknown { seen, .. } = self {
            let expected = &PREFACE[*seen..];
            let (first, rest) = bytes.split_at(bytes.len().min(expected.len()));
            if first != &expected[..first.len()] {
                *self = Self::Http1;
                return Ok(());
            }
            *seen += first.len();
            if *seen < PREFACE.len() {
                return Ok(());
            }
            *self = Self::Http2(ControlFrames::new());
            bytes = rest;
        }
        match self {
            Self::Http2(frames) => frames.read(bytes).map_err(io::Error::other),
            Self::Unknown { .. } | Self::Http1 => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        if let Protocol::Unknown { deadline, .. } = &mut self.protocol
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.protocol.inspect(&buffer.filled()[filled..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count_written(&written);
        self.written(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count_written(&written);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
