//! The sending half of a connection: packets asked for, acknowledgements and pings.

use std::time::Duration;

use bytes::BytesMut;
use tokio::{
    io::{AsyncWriteExt, WriteHalf},
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

use super::{
    super::{
        lost::Lost,
        packet::{self, Role},
        protocol::Protocol,
    },
    arrivals::{Arrivals, Settled},
};
use crate::Socket;

/// Nothing but a ping is added to as much as is not sent yet, in bytes.
pub(super) const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of acknowledgements that wait to be put in order. Tasks with further ones wait, too.
const SETTLED_MAX: usize = 256;
/// Interval between checks whether an acknowledgement was held for long enough.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The sending half: packets asked for, acknowledgements and pings.
pub(super) struct Writer {
    socket: WriteHalf<Box<dyn Socket>>,
    pub(super) output: BytesMut,
    is_flushed: bool,
    pub(super) arrivals: Arrivals,
    settled: Receiver<Settled>,
    pub(super) settled_sender: Sender<Settled>,
    looks: Interval,
    pings: Interval,
    /// True if the broker has not answered the last ping yet.
    pub(super) is_pinged: bool,
    protocol: Protocol,
}

impl Writer {
    pub(super) fn new(socket: WriteHalf<Box<dyn Socket>>, protocol: Protocol, role: Role) -> Self {
        let (settled_sender, settled) = channel(settled_max(role));
        Self {
            socket,
            output: BytesMut::new(),
            is_flushed: true,
            arrivals: Arrivals::default(),
            settled,
            settled_sender,
            looks: every(LOOK_INTERVAL),
            pings: every(Duration::from_secs(packet::KEEP_ALIVE_S.into())),
            is_pinged: false,
            protocol,
        }
    }

    pub(super) fn ping_every(&mut self, keep_alive: Duration) {
        self.pings = every(keep_alive);
    }

    pub(super) fn has_room(&self) -> bool {
        self.output.len() < UNSENT_BYTES_MAX
    }

    /// Sends some of the output, once there is any.
    pub(super) async fn write(&mut self) -> Result<(), Lost> {
        let mut settled = Vec::new();
        let (has_room, is_sent) = (self.has_room(), self.output.is_empty() && self.is_flushed);
        let is_holding = self.arrivals.is_holding();
        tokio::select! {
            _ = self.settled.recv_many(&mut settled, SETTLED_MAX), if has_room => self.settle(settled),
            sent = send(&mut self.socket, &mut self.output, &mut self.is_flushed), if !is_sent => {
                return sent.map_err(|error| Lost::io(error, self.protocol));
            }
            _ = self.looks.tick(), if has_room && is_holding => {
                self.arrivals.release_late(Instant::now(), &mut self.output);
            }
            _ = self.pings.tick() => return self.ping(),
        }
        Ok(())
    }

    /// Appends the acknowledgements of these to the output, unless they have to wait for others.
    fn settle(&mut self, settled: impl IntoIterator<Item = Settled>) {
        let now = Instant::now();
        settled.into_iter().for_each(|settled| self.arrivals.settle(settled, now, &mut self.output));
    }

    /// Appends all acknowledgements that wait to the output.
    pub(super) fn take_settled(&mut self) {
        while let Ok(settled) = self.settled.try_recv() {
            self.settle([settled]);
        }
        self.arrivals.release_all(&mut self.output);
    }

    fn ping(&mut self) -> Result<(), Lost> {
        if std::mem::replace(&mut self.is_pinged, true) {
            return Err(Lost::because("the broker no longer answers pings"));
        }
        packet::ping(&mut self.output);
        Ok(())
    }

    pub(super) async fn disconnect(&mut self) -> Result<(), Lost> {
        self.take_settled();
        packet::disconnect(&mut self.output);
        let sent = send(&mut self.socket, &mut self.output, &mut self.is_flushed).await;
        sent.map_err(|error| Lost::io(error, self.protocol))
    }
}

/// Sends all of `output`. Sent bytes are removed, also if the future is dropped.
async fn send(
    socket: &mut WriteHalf<Box<dyn Socket>>,
    output: &mut BytesMut,
    is_flushed: &mut bool,
) -> std::io::Result<()> {
    while !output.is_empty() {
        *is_flushed = false;
        if socket.write_buf(output).await? == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
    }
    socket.flush().await?;
    *is_flushed = true;
    Ok(())
}

/// Where nobody can wait, there is room for all messages that a broker may send before it has acknowledgements.
fn settled_max(role: Role) -> usize {
    if matches!(role, Role::Program) { u16::MAX.into() } else { SETTLED_MAX }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
