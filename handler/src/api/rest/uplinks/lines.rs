//! Reads the lines of a body, one after the other, without ever holding more than one part of it and one line.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use api::rest::handler as body;
use axum::body::{Body, BodyDataStream, Bytes};
use futures::Stream;
use server::json::fill_from_path;
use types::{AppId, Clock};

use crate::{
    Error,
    api::operations::SimulatedUplink,
    uplink::batch::{LINE_BYTES_MAX, Line},
};

/// Maximum number of bytes without an uplink in them, before the batch ends.
const SKIPPED_BYTES_MAX: usize = 4 << 20;

/// The uplinks in a body. A line that cannot be read is an uplink that cannot be handled; empty lines only count.
pub(super) struct Lines {
    body: BodyDataStream,
    app_id: AppId,
    clock: Arc<dyn Clock>,
    /// The rest of the last part.
    part: Bytes,
    /// The beginning of a line, if it came in earlier parts.
    begun: Vec<u8>,
    /// The number of lines that have ended.
    ended: u64,
    /// True while the rest of a line is skipped, which is too long.
    is_skipping: bool,
    /// The number of bytes for which no uplink was charged yet.
    skipped: usize,
    is_done: bool,
}

impl Lines {
    pub(super) fn new(body: Body, app_id: AppId, clock: Arc<dyn Clock>) -> Self {
        Self {
            body: body.into_data_stream(),
            app_id,
            clock,
            part: Bytes::new(),
            begun: Vec::new(),
            ended: 0,
            is_skipping: false,
            skipped: 0,
            is_done: false,
        }
    }

    /// The next uplink in the part; none if it has to go on with the next part.
    fn next_in_part(&mut self) -> Option<Line> {
        loop {
            let Some(end) = self.part.iter().position(|byte| *byte == b'\n') else {
                let rest = std::mem::take(&mut self.part);
                return self.begin(&rest);
            };
            let rest = self.part.split_to(end + 1);
            let line = self.end(&rest[..end]);
            if line.is_some() {
                return line;
            }
        }
    }

    /// Keeps the beginning of a line, unless that is too long.
    fn begin(&mut self, bytes: &[u8]) -> Option<Line> {
        if self.is_skipping {
            self.skipped += bytes.len();
            return None;
        }
        if self.begun.len() + bytes.len() > LINE_BYTES_MAX {
            self.is_skipping = true;
            return Some(self.too_long());
        }
        self.begun.extend_from_slice(bytes);
        None
    }

    /// The line that ends with these bytes; none if it is empty, or too long and refused already.
    fn end(&mut self, bytes: &[u8]) -> Option<Line> {
        if std::mem::take(&mut self.is_skipping) {
            self.skipped += bytes.len();
            self.ended += 1;
            return None;
        }
        if self.begun.len() + bytes.len() > LINE_BYTES_MAX {
            let line = self.too_long();
            self.ended += 1;
            return Some(line);
        }
        self.ended += 1;
        if self.begun.is_empty() {
            return self.uplink(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let whole = std::mem::take(&mut self.begun);
        let line = self.uplink(&whole);
        self.begun = whole;
        self.begun.clear();
        line
    }

    fn uplink(&mut self, line: &[u8]) -> Option<Line> {
        self.skipped += line.len() + 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.skipped);
        Some(SimulatedUplink::line(self.ended, bytes, self.parse(text), self.clock.now()))
    }

    fn parse(&self, text: &[u8]) -> Result<SimulatedUplink, Error> {
        if text.first() != Some(&b'{') {
            return Err(Error::invalid("Body", "it must be a JSON object"));
        }
        let mut body: body::SimulatedUplink =
            serde_json::from_slice(text).map_err(|error| Error::invalid("Body", error))?;
        fill_from_path("app_id", &mut body.app_id, self.app_id.to_string(), Error::invalid)?;
        body.try_into()
    }

    fn too_long(&mut self) -> Line {
        self.begun = Vec::new();
        let error = Error::LineTooLong { bytes_max: LINE_BYTES_MAX };
        let bytes = LINE_BYTES_MAX + std::mem::take(&mut self.skipped);
        SimulatedUplink::line(self.ended + 1, bytes, Err(error), self.clock.now())
    }
}

impl Stream for Lines {
    type Item = Result<Line, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(line) = self.next_in_part() {
                return Poll::Ready(Some(Ok(line)));
            }
            if self.is_done {
                return Poll::Ready(None);
            }
            if self.skipped > SKIPPED_BYTES_MAX {
                self.is_done = true;
                return Poll::Ready(Some(Err(Error::NoUplinks { bytes_max: SKIPPED_BYTES_MAX })));
            }
            match ready!(Pin::new(&mut self.body).poll_next(context)) {
                Some(Ok(part)) => self.part = part,
                // Nobody knows whether its last line is whole.
                Some(Err(_)) => {
                    self.is_done = true;
                    return Poll::Ready(Some(Err(Error::BodyCut)));
                }
                None => {
                    self.is_done = true;
                    if !self.begun.is_empty() {
                        self.part = Bytes::from_static(b"\n");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use testing::ManualClock;
    use types::Kinded;

    use super::*;

    /// The numbers of the lines, and what is wrong with those that are refused, when the body comes in such parts.
    async fn lines(parts: Vec<Result<String, std::io::Error>>) -> Vec<(u64, Option<String>)> {
        let body = Body::from_stream(stream::iter(parts));
        let lines = Lines::new(body, "app".parse().unwrap(), ManualClock::new());
        let line = |line: Result<Line, Error>| {
            let Line { number, frame, .. } = line.unwrap();
            (number, frame.err().map(|error| format!("{}: {error}", error.kind())))
        };
        lines.map(line).collect().await
    }

    async fn whole(text: &str) -> Vec<(u64, Option<String>)> {
        lines(vec![Ok(text.to_owned())]).await
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_are_cut_into_parts() {
        let text = "{\"dev_id\": \"dev-a\"}\n\r\n  {\"dev_id\": \"dev-b\", \"port\": 2}\r\n[]\n{\"dev_id\": \"dev-c\"}";
        let expected = whole(text).await;
        assert_eq!(expected.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 3, 4, 5]);
        let refused: Vec<_> = expected.iter().filter_map(|(number, error)| error.as_ref().map(|_| *number)).collect();
        assert_eq!(refused, [4]);
        for length in 1..text.len() {
            let parts = text.as_bytes().chunks(length).map(|part| Ok(String::from_utf8_lossy(part).into_owned()));
            assert_eq!(lines(parts.collect()).await, expected, "{length}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_alone_and_not_kept() {
        let (long, good) = ("x".repeat(LINE_BYTES_MAX + 1), r#"{"dev_id": "dev-a"}"#);
        for length in [1000, LINE_BYTES_MAX, 10 * LINE_BYTES_MAX] {
            let text = format!("{good}\n{long}{long}\n{good}\n{long}");
            let parts = text.as_bytes().chunks(length).map(|part| Ok(String::from_utf8_lossy(part).into_owned()));
            let lines = lines(parts.collect()).await;
            let refused: Vec<_> = lines.iter().map(|(number, error)| (*number, error.is_some())).collect();
            assert_eq!(refused, [(1, false), (2, true), (3, false), (4, true)], "{length}");
            assert!(lines[1].1.as_ref().unwrap().starts_with("too_large: line not valid"), "{lines:?}");
        }
    }

    #[tokio::test]
    async fn the_last_line_of_a_body_that_is_cut_off_is_not_an_uplink() {
        let good = "{\"dev_id\": \"dev-a\"}\n{\"dev_id\": \"dev-b\"}".to_owned();
        assert_eq!(lines(vec![Ok(good.clone())]).await.len(), 2);
        let parts = [Ok(good), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
        let body = Body::from_stream(stream::iter(parts));
        let lines: Vec<_> = Lines::new(body, "app".parse().unwrap(), ManualClock::new()).collect().await;
        assert!(lines.len() == 2 && lines[0].is_ok(), "{}", lines.len());
        assert!(matches!(lines[1], Err(Error::BodyCut)));
    }

    #[tokio::test]
    async fn a_line_names_no_other_application() {
        let refused = whole(r#"{"dev_id": "dev-a", "app_id": "other"}"#).await;
        assert!(refused[0].1.as_ref().unwrap().contains("the path says `app`"), "{refused:?}");
    }
}
