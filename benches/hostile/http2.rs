//! HTTP/2 frames as an attacker wants them.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;

const ACK: u8 = 1;
const END_STREAM_AND_HEADERS: u8 = 5;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `INITIAL_WINDOW_SIZE` 0: nothing of a body may be sent.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// A connection that lets the server send no bodies.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) async fn start(stream: TcpStream) -> io::Result<Self> {
        let mut stream = BufReader::new(stream);
        stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW)].concat()).await?;
        Ok(Self { stream })
    }

    /// Requests a path; `number` counts the requests of this connection from 0.
    pub(crate) async fn get(&mut self, number: u32, path: &str, authorization: &str) -> io::Result<()> {
        // `GET` and `http` are in the static table of HPACK, as are the names of the other headers.
        let mut block = vec![0x82, 0x86, 0x04];
        block.extend(text(path));
        block.extend([0x01, 1, b'x', 0x0f, 0x08]);
        block.extend(text(authorization));
        self.stream.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 2 * number + 1, &block)).await
    }

    /// The kind of the next frame that needs no answer; pings and settings are answered.
    pub(crate) async fn next(&mut self) -> io::Result<u8> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await?;
            let mut body = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.stream.read_exact(&mut body).await?;
            match (head[3], head[4] & ACK) {
                (PING, 0) => self.stream.write_all(&frame(PING, ACK, 0, &body)).await?,
                (SETTINGS, 0) => self.stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?,
                (kind, _) => return Ok(kind),
            }
        }
    }
}

/// Keeps a connection open until the server closes it.
pub(crate) async fn answer_pings(stream: TcpStream) -> io::Result<()> {
    let mut connection = Connection::start(stream).await?;
    while connection.next().await? != GOAWAY {}
    Ok(())
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
}

/// A text of HPACK, not compressed.
fn text(value: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), value.len());
    if rest < 127 {
        bytes.push(rest as u8);
    } else {
        bytes.push(127);
        rest -= 127;
        while rest > 0x7f {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes.extend(value.bytes());
    bytes
}
