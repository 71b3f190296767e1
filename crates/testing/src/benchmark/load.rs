//! A cheap HTTP load generator that sends the same requests over persistent connections.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use super::figures::quantile;

/// Sends a request over and over, or several in turn, on several connections.
#[derive(Clone)]
pub struct Load {
    address: SocketAddr,
    requests: Arc<[Vec<u8>]>,
    /// The number of the next request, over all connections.
    next: Arc<AtomicUsize>,
    in_flight: usize,
    pause: Option<Duration>,
    back_off: Duration,
}

/// The responses to a load, with their latencies.
#[derive(Default)]
pub struct Taken {
    responses: Vec<(u16, f64)>,
    time: Duration,
}

impl Load {
    /// Sends the bytes of `request`, one after the other on each of `in_flight` connections.
    pub fn new(address: SocketAddr, request: &[u8], in_flight: usize) -> Self {
        Self::in_turn(address, vec![request.to_vec()], in_flight)
    }

    /// Sends these requests in turn, over and over, on `in_flight` connections together.
    pub fn in_turn(address: SocketAddr, requests: Vec<Vec<u8>>, in_flight: usize) -> Self {
        let (requests, next) = (requests.into(), Arc::default());
        Self { address, requests, next, in_flight, pause: None, back_off: Duration::ZERO }
    }

    /// Limits the rate of all connections together.
    pub fn at(self, per_second: u32) -> Self {
        let pause = Duration::from_secs(1) * u32::try_from(self.in_flight).unwrap() / per_second;
        Self { pause: Some(pause), ..self }
    }

    /// Pauses a connection after each response that is not 200.
    pub fn backing_off(self, back_off: Duration) -> Self {
        Self { back_off, ..self }
    }

    /// Runs for this time.
    pub async fn run_for(self, time: Duration) -> Taken {
        let end = Instant::now() + time;
        self.run(move || Instant::now() < end).await
    }

    /// Runs until this many requests are answered.
    pub async fn run_times(self, count: usize) -> Taken {
        let left = Arc::new(AtomicUsize::new(count));
        self.run(move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok())
            .await
    }

    async fn run(self, goes_on: impl Fn() -> bool + Clone + Send + 'static) -> Taken {
        let began = Instant::now();
        let mut connections = JoinSet::new();
        for number in 0..self.in_flight {
            connections.spawn(self.clone().connection(number, goes_on.clone()));
        }
        let responses = connections.join_all().await.concat();
        Taken { responses, time: began.elapsed() }
    }

    async fn connection(self, number: usize, goes_on: impl Fn() -> bool) -> Vec<(u16, f64)> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut responses, mut buffer) = (Vec::new(), Vec::new());
        // Staggers the connections of a steady rate.
        let stagger = self.pause.map(|pause| pause * number as u32 / self.in_flight as u32);
        let mut due = Instant::now() + stagger.unwrap_or_default();
        while goes_on() {
            match self.pause {
                Some(pause) => {
                    tokio::time::sleep_until(due.into()).await;
                    due += pause;
                }
                None => due = Instant::now(),
            }
            let sent = self.pause.map_or(due, |pause| due - pause);
            let number = self.next.fetch_add(1, Ordering::Relaxed) % self.requests.len();
            stream.write_all(&self.requests[number]).await.unwrap();
            let status = response(&mut stream, &mut buffer).await;
            responses.push((status, sent.elapsed().as_secs_f64() * 1e3));
            if status != 200 {
                tokio::time::sleep(self.back_off).await;
            }
        }
        responses
    }
}

/// Reads a response that has a length, and returns its status.
pub async fn response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    loop {
        assert_ne!(stream.read_buf(buffer).await.unwrap(), 0, "the service closed a connection");
        let Some(head) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head]).unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if buffer.len() >= head + 4 + length.parse::<usize>().unwrap() {
            return text[9..12].parse().unwrap();
        }
    }
}

impl Taken {
    /// The throughput.
    pub fn per_second(&self) -> f64 {
        self.responses.len() as f64 / self.time.as_secs_f64()
    }

    /// The throughput of answers with this status.
    pub fn per_second_of(&self, status: u16) -> f64 {
        self.of(status) as f64 / self.time.as_secs_f64()
    }

    /// Returns the number of responses with this status.
    pub fn of(&self, status: u16) -> usize {
        self.responses.iter().filter(|(answered, _)| *answered == status).count()
    }

    /// Panics unless all responses had this status.
    pub fn all(&self, status: u16) {
        assert!(
            self.of(status) == self.responses.len() && !self.responses.is_empty(),
            "not all responses were {status}"
        );
    }

    /// A quantile of the latency: 0.5 is the median.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        quantile(&mut self.responses.iter().map(|(_, time)| *time).collect::<Vec<_>>(), part)
    }
}
