//! A client that sends lines of a request's body one by one, and reads those of the response meanwhile.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};
use types::{AppId, Credential};

use crate::harness::MESSAGE_TIMEOUT;

pub(super) struct LineStream {
    /// The status of the response.
    pub(super) status: u16,
    response: BufReader<OwnedReadHalf>,
    request: OwnedWriteHalf,
}

impl LineStream {
    /// Sends the head of a batch, and waits for that of the response.
    pub(super) async fn open(address: &str, app_id: &AppId, caller: Option<&Credential>) -> Self {
        let (response, mut request) = TcpStream::connect(address).await.unwrap().into_split();
        let authorization = caller.map(|caller| format!("authorization: {}\r\n", caller.to_header()));
        let head = format!(
            "POST /applications/{app_id}/uplinks HTTP/1.1\r\nhost: {address}\r\ntransfer-encoding: chunked\r\n{}\r\n",
            authorization.unwrap_or_default()
        );
        request.write_all(head.as_bytes()).await.unwrap();
        let mut stream = Self { status: 0, response: BufReader::new(response), request };
        let first = stream.read_line().await.unwrap();
        stream.status = first.split(' ').nth(1).unwrap().parse().unwrap();
        while !stream.read_line().await.unwrap().is_empty() {}
        stream
    }

    /// Sends a part of the body.
    pub(super) async fn send(&mut self, part: &str) {
        self.try_send(part).await.unwrap();
    }

    /// The same, if the server still takes it.
    pub(super) async fn try_send(&mut self, part: &str) -> io::Result<()> {
        let chunk = format!("{:x}\r\n{part}\r\n", part.len());
        timeout(MESSAGE_TIMEOUT, self.request.write_all(chunk.as_bytes())).await.expect("it is read, or given up")
    }

    /// Ends the body.
    pub(super) async fn finish(&mut self) {
        self.request.write_all(b"0\r\n\r\n").await.unwrap();
    }

    /// The next line of the response; none at its end.
    pub(super) async fn answer(&mut self) -> Option<Value> {
        loop {
            // Between the lines are the lengths of the chunks.
            match self.read_line().await?.as_str() {
                "0" => return None,
                line if line.starts_with('{') => return Some(serde_json::from_str(line).unwrap()),
                _ => {}
            }
        }
    }

    async fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let reading = timeout(MESSAGE_TIMEOUT, self.response.read_line(&mut line));
        let read = reading.await.expect("a line arrives").unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }
}
