//! The stream of a client, which is cut if it shows no protocol, floods, or does not read.

mod control_frames;

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

use self::control_frames::ControlFrames;

/// The first bytes of every HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Number of bytes written before other tasks go on: it takes a processor some 20 µs.
const WRITTEN_TOGETHER: usize = 64 * 1024;

/// A stream with limits that hyper does not have.
///
/// hyper-util waits without a limit until a client has shown whether it speaks HTTP/1.1 or HTTP/2, and hyper for one to
/// read what it is sent. Nor does hyper count the frames that ask for nothing. It writes whole responses at once.
pub(super) struct ClientStream<S> {
    stream: S,
    protocol: Protocol,
    /// Maximum time for which the client may read nothing although there is something to write.
    unread_timeout: Duration,
    unread: Option<Pin<Box<Sleep>>>,
    /// Number of bytes written since other tasks went on.
    written: usize,
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
        Self { stream, protocol, unread_timeout, unread: None, written: 0 }
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

    /// Lets other tasks go on after much was written.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.written < WRITTEN_TOGETHER {
            return Poll::Ready(());
        }
        self.written = 0;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        let Poll::Ready(Ok(bytes)) = written else { return };
        self.written = self.written.saturating_add(*bytes);
        if let Protocol::Http2(frames) = &mut self.protocol {
            frames.note_written(*bytes);
        }
    }
}

/// The first slices, until they have as much as is written at once.
fn first<'a, 'b>(slices: &'a [io::IoSlice<'b>]) -> &'a [io::IoSlice<'b>] {
    let mut bytes = 0_usize;
    let count = slices.iter().take_while(|slice| {
        let is_first = bytes < WRITTEN_TOGETHER;
        bytes = bytes.saturating_add(slice.len());
        is_first
    });
    &slices[..count.count()]
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
        ready!(self.poll_turn(context));
        let bytes = &bytes[..bytes.len().min(WRITTEN_TOGETHER)];
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
        ready!(self.poll_turn(context));
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, first(slices));
        self.count_written(&written);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use futures::{poll, task::noop_waker};
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn others_go_on_while_much_is_written() {
        let bytes = vec![0; 4 * WRITTEN_TOGETHER];
        let (stream, _client) = duplex(bytes.len());
        let mut stream = ClientStream::new(stream, SECOND, SECOND);
        let mut turns = 1;
        {
            let mut writing = std::pin::pin!(stream.write_all(&bytes));
            while poll!(writing.as_mut()).is_pending() {
                turns += 1;
            }
        }
        assert_eq!(turns, 4);
    }

    #[tokio::test]
    async fn slices_are_written_as_far_as_one_turn_goes() {
        let piece = vec![0; WRITTEN_TOGETHER / 2];
        let slices = [io::IoSlice::new(&piece); 5];
        let (stream, _client) = duplex(8 * WRITTEN_TOGETHER);
        let mut stream = ClientStream::new(stream, SECOND, SECOND);
        let waker = noop_waker();
        let mut write = || Pin::new(&mut stream).poll_write_vectored(&mut Context::from_waker(&waker), &slices);
        let first = write();
        assert!(matches!(first, Poll::Ready(Ok(WRITTEN_TOGETHER))), "{first:?}");
        assert!(write().is_pending());
        assert!(write().is_ready());
    }
}
