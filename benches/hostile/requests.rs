//! HTTP requests of an attacker, each of which may differ from the one before.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout, timeout_at},
};

use crate::attack::{Attacker, attacker};

/// Pause of a connection after a refusal. Attackers would not pause, but here they share processors with the server.
const BACK_OFF: Duration = Duration::from_millis(1);

/// Number of requests by the status of the response; 0 stands for a connection that was closed or not made.
#[derive(Default)]
pub(crate) struct Statuses(BTreeMap<u16, usize>);

/// Sends requests over several connections.
#[derive(Clone)]
pub(crate) struct Requests {
    to: SocketAddr,
    connections: usize,
    addresses: usize,
    request: Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>,
    sent: Arc<AtomicU64>,
}

/// A connection that is made when it is needed.
pub(crate) struct Connection {
    to: SocketAddr,
    address: usize,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Requests {
    /// Sends what `request` makes of the number of each request.
    pub(crate) fn new(
        to: SocketAddr,
        connections: usize,
        request: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self { to, connections, addresses: 1, request: Arc::new(request), sent: Arc::default() }
    }

    /// Has the connections come from this many addresses.
    pub(crate) fn at_addresses(self, addresses: usize) -> Self {
        Self { addresses, ..self }
    }

    /// Attacks with these requests, and reports the number of responses by status.
    pub(crate) fn attacker(self) -> Attacker {
        attacker(move |end| self.run_until(end))
    }

    /// Sends this many requests, all of which must succeed.
    pub(crate) async fn run_times(self, count: u64) {
        let statuses = self.run(Instant::now() + Duration::from_secs(600), count).await;
        assert!(statuses.0.keys().all(|status| (200..300).contains(status)), "{statuses}");
    }

    pub(crate) async fn run_until(self, end: Instant) -> String {
        self.run(end, u64::MAX).await.to_string()
    }

    async fn run(self, end: Instant, count: u64) -> Statuses {
        let mut connections = JoinSet::new();
        for number in 0..self.connections {
            connections.spawn(self.clone().connection(number, end, count));
        }
        let mut statuses = Statuses::default();
        connections.join_all().await.into_iter().for_each(|of| statuses.merge(of));
        statuses
    }

    async fn connection(self, number: usize, end: Instant, count: u64) -> Statuses {
        let mut connection = Connection::new(self.to).at(1 + number % self.addresses);
        let mut statuses = Statuses::default();
        while Instant::now() < end {
            let number = self.sent.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let request = (self.request)(number);
            // One that gets no response by then is not counted.
            let Ok(status) = timeout_at(end.into(), connection.status(&request)).await else { break };
            let status = status.unwrap_or_else(|_| connection.close());
            statuses.add(status);
            if !(200..300).contains(&status) {
                sleep(BACK_OFF).await;
            }
        }
        statuses
    }
}

impl Connection {
    pub(crate) fn new(to: SocketAddr) -> Self {
        Self { to, address: 0, stream: None, buffer: Vec::new() }
    }

    /// Has it come from a loopback address of this number.
    pub(crate) fn at(self, address: usize) -> Self {
        Self { address, ..self }
    }

    /// The status of the response to a request; `None` if there is none in this time.
    pub(crate) async fn send(&mut self, request: &[u8], patience: Duration) -> Option<u16> {
        let status = timeout(patience, self.status(request)).await.ok().and_then(Result::ok);
        if status.is_none() {
            self.close();
        }
        status
    }

    pub(crate) async fn status(&mut self, request: &[u8]) -> io::Result<u16> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect_from(self.address, self.to).await?),
        };
        stream.write_all(request).await?;
        response(stream, &mut self.buffer).await
    }

    /// Returns the status that stands for a closed connection.
    pub(crate) fn close(&mut self) -> u16 {
        self.stream = None;
        0
    }
}

/// Reads a response, whose body has a length or comes in chunks; returns its status.
pub(crate) async fn response(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> io::Result<u16> {
    buffer.clear();
    let (mut head, mut length) = (None, None);
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head.is_none()
            && let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")
        {
            head = Some(end);
            let text = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        }
        let Some(head) = head else { continue };
        let is_complete = match length {
            Some(length) => buffer.len() >= head + 4 + length,
            None => buffer.ends_with(b"0\r\n\r\n") || &buffer[9..12] == b"204",
        };
        if is_complete {
            let status = String::from_utf8_lossy(&buffer[9..12]).parse();
            return status.map_err(io::Error::other);
        }
    }
}

/// Connects from a loopback address of this number: the neighbour's own is 0, attackers have others.
pub(crate) async fn connect_from(number: usize, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(number % 250).unwrap();
    let address = if number == 0 { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(127, 0, 1, last) };
    socket.bind((address, 0).into())?;
    socket.set_nodelay(true)?;
    socket.connect(to).await
}

/// An HTTP request with a JSON body; an empty one is not sent.
pub(crate) fn request(method: &str, path: &str, authorization: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: {authorization}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Statuses {
    pub(crate) fn add(&mut self, status: u16) {
        *self.0.entry(status).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|(status, count)| *self.0.entry(status).or_default() += count);
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(status, count): (&u16, &usize)| match status {
            0 => format!("{count} × closed"),
            _ => format!("{count} × {status}"),
        };
        out.write_str(&self.0.iter().map(text).collect::<Vec<_>>().join(", "))
    }
}
