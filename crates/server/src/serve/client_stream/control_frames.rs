//! Counts the frames of an HTTP/2 client that ask for nothing, and says when there are too many.
//!
//! `SETTINGS`, `PING` and `WINDOW_UPDATE` cost a client next to nothing, and no request that admission control sees. A
//! client needs them in proportion to its requests and to what it reads, and a few to see whether the server is there.

use std::time::Duration;

use tokio::time::Instant;

/// Number of control frames that a client may send at once.
const BURST: u64 = 1000;
/// Number of further ones that it may send for each request, and for each KiB that it is sent.
const PER_REQUEST: u64 = 8;
const PER_KIB: u64 = 1;
/// The time after which it may send another one without either.
const INTERVAL: Duration = Duration::from_millis(100);

const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// The control frames that a client may still send.
pub(super) struct ControlFrames {
    left: u64,
    /// End of the time that is accounted for.
    counted: Instant,
    /// Number of bytes written that do not make a whole KiB yet.
    written: u64,
    /// The beginning of a frame's header, and the number of its bytes that have come.
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Number of bytes of a frame's payload that are still to come.
    payload: usize,
}

/// The client sends too many control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many control frames")]
pub(super) struct Flood;

impl ControlFrames {
    /// The counter of a new connection.
    pub(super) fn new() -> Self {
        let (left, counted) = (BURST, Instant::now());
        Self { left, counted, written: 0, head: [0; HEAD_BYTES], head_bytes: 0, payload: 0 }
    }

    /// Counts the frames that the client has sent after the preface.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Flood> {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let (skipped, rest) = bytes.split_at(self.payload.min(bytes.len()));
                self.payload -= skipped.len();
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at((HEAD_BYTES - self.head_bytes).min(bytes.len()));
            self.head[self.head_bytes..][..part.len()].copy_from_slice(part);
            self.head_bytes += part.len();
            bytes = rest;
            if self.head_bytes == HEAD_BYTES {
                self.head_bytes = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    /// Lets the client acknowledge the bytes that it was sent.
    pub(super) fn note_written(&mut self, bytes: usize) {
        self.written += bytes as u64;
        self.add(self.written / 1024 * PER_KIB);
        self.written %= 1024;
    }

    fn frame(&mut self) -> Result<(), Flood> {
        let [a, b, c, kind, ..] = self.head;
        self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            HEADERS => self.add(PER_REQUEST),
            // Its part of a body is charged to the request; without a body, it is like a control frame.
            DATA if self.payload > 0 => {}
            // Their number is limited by h2.
            CONTINUATION => {}
            _ => self.take()?,
        }
        Ok(())
    }

    fn add(&mut self, more: u64) {
        self.left = self.left.saturating_add(more).min(BURST);
    }

    fn take(&mut self) -> Result<(), Flood> {
        if self.left == 0 {
            let intervals = self.counted.elapsed().as_millis() / INTERVAL.as_millis();
            self.counted = Instant::now();
            self.add(u64::try_from(intervals).unwrap_or(BURST));
        }
        self.left = self.left.checked_sub(1).ok_or(Flood)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;

    fn frame(kind: u8, payload: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, payload, kind, 0, 0, 0, 0, 0];
        frame.resize(HEAD_BYTES + usize::from(payload), 0xff);
        frame
    }

    /// Returns the number of frames without payload that pass, at most 10,000.
    fn pings(frames: &mut ControlFrames) -> usize {
        (0..10_000).take_while(|_| frames.read(&frame(PING, 0)).is_ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn pings_without_requests_end_a_connection() {
        let mut frames = ControlFrames::new();
        assert_eq!((pings(&mut frames), pings(&mut frames)), (1000, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_reading_and_time_allow_more() {
        let mut frames = ControlFrames::new();
        pings(&mut frames);
        frames.read(&frame(HEADERS, 100)).unwrap();
        assert_eq!(pings(&mut frames), 8);
        (0..5).for_each(|_| frames.note_written(512));
        assert_eq!(pings(&mut frames), 2);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!((10..1000).contains(&pings(&mut frames)));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_found_however_they_are_cut() {
        let sent = [frame(HEADERS, 30), frame(DATA, 200), frame(PING, 8), frame(DATA, 0)].concat();
        for part in 1..=sent.len() {
            let mut frames = ControlFrames::new();
            sent.chunks(part).for_each(|part| frames.read(part).unwrap());
            assert_eq!(frames.left, BURST - 2, "in parts of {part} bytes");
        }
    }
}
