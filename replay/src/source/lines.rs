//! Files with a JSON object on each line.

use std::io::{self, BufRead, BufReader, Read};

use crate::{Batch, Error, UplinkSource, source::LINE_BYTES_MAX};

/// Number of bytes of lines that are enough for a batch.
const BATCH_BYTES: usize = 128 << 10;
const INPUT_BYTES: usize = 256 << 10;

/// Lines of JSON from a file or a pipe.
pub struct JsonLines<R> {
    name: String,
    input: BufReader<R>,
    /// The number of the next line.
    line: u64,
    is_at_end: bool,
}

impl<R: Read + Send> JsonLines<R> {
    /// Reads `input`, which people call `name`.
    pub fn new(name: impl Into<String>, input: R) -> Self {
        Self { name: name.into(), input: BufReader::with_capacity(INPUT_BYTES, input), line: 1, is_at_end: false }
    }

    /// Adds a line to `text`; false if it was too long and was left out.
    fn read_line(&mut self, text: &mut Vec<u8>) -> io::Result<bool> {
        let before = text.len();
        self.input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', text)?;
        let length = text.len() - before;
        self.is_at_end = length == 0;
        self.line += u64::from(length > 0);
        if length <= LINE_BYTES_MAX || text.ends_with(b"\n") {
            return Ok(true);
        }
        text.truncate(before);
        self.input.skip_until(b'\n')?;
        Ok(false)
    }
}

impl<R: Read + Send> UplinkSource for JsonLines<R> {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let (first, mut text, mut is_whole) = (self.line, Vec::with_capacity(BATCH_BYTES), true);
        while is_whole && !self.is_at_end && text.len() < BATCH_BYTES {
            let read = self.read_line(&mut text);
            is_whole = read.map_err(|source| Error::Read { name: self.name.clone(), source })?;
        }
        let is_empty = text.is_empty() && is_whole;
        Ok((!is_empty).then(|| Batch::lines(first, text, !is_whole)))
    }

    fn unit(&self) -> &'static str {
        "line"
    }
}
