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
        let mut stream = Self::begin(address, app_id, caller, "").await;
        stream.read_head().await;
        stream
    }

    /// Sends the head of a batch, and sends the first part of the body when the server says that it may.
    pub(super) async fn ask_first(address: &str, app_id: &AppId, caller: &Credential, part: &str) -> Self {
        let mut stream = Self::begin(address, app_id, Some(caller), "expect: 100-continue\r\n").await;
        stream.read_head().await;
        assert_eq!(stream.status, 100);
        stream.send(part).await;
        stream.read_head().await;
        stream
    }

    async fn begin(address: &str, app_id: &AppId, caller: Option<&Credential>, header: &str) -> Self {
        let (response, mut request) = TcpStream::connect(address).await.unwrap().into_split();
        let authorization = caller.map(|caller| format!("authorization: {}\r\n", caller.to_header()));
        let head = format!(
            "POST /applications/{app_id}/uplinks HTTP/1.1\r\nhost: {address}\r\ntransfer-encoding: chunked\r\n{header}{}\r\n",
            authorization.unwrap_or_default()
        );
        request.write_all(head.as_bytes()).await.unwrap();
        Self { status: 0, response: BufReader::new(response), request }
    }

    async fn read_head(&mut self) {
        let first = self.read_line().await.unwrap();
        self.status = first.split(' ').nth(1).unwrap().parse().unwrap();
        while !self.read_line().await.unwrap().is_empty() {}
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
