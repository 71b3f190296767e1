//! One simulated device: it sends its next uplink only when the last one was delivered or is lost, so that each
//! message that arrives belongs to one uplink, whatever its payload is.

use std::{sync::Arc, time::Duration};

use api::handler::SimulatedUplinkMessage;
use client::handler::HandlerClient;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Time that a device waits at the end for messages that should no longer arrive.
const LAST_WAIT: Duration = Duration::from_millis(500);

pub(super) struct Simulated {
    pub(super) handler: Arc<HandlerClient>,
    pub(super) uplink: SimulatedUplinkMessage,
    /// Time at which the first uplink is due.
    pub(super) first: Instant,
    pub(super) period: Duration,
    /// Time after which an uplink that was not delivered is lost.
    pub(super) timeout: Duration,
    pub(super) end: Instant,
    pub(super) arrivals: mpsc::Receiver<Arrival>,
    pub(super) stop: CancellationToken,
}

/// A message of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// An uplink, and when it arrived.
    Uplink(Instant),
    /// Its functions failed.
    Failure,
}

/// Totals of the uplinks of one device.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) sent: u64,
    pub(super) latencies: Vec<Duration>,
    pub(super) lost: u64,
    /// Uplinks delivered after they counted as lost.
    pub(super) late: u64,
    pub(super) duplicates: u64,
    pub(super) failures: u64,
    pub(super) refused: u64,
    /// Reason of the last refusal.
    pub(super) refusal: Option<String>,
    /// Uplinks that were due while the one before was on its way.
    pub(super) held_up: u64,
    /// Delays of this program in sending uplinks that nothing held up.
    pub(super) delays: Vec<Duration>,
}

impl Simulated {
    pub(super) async fn run(mut self) -> Totals {
        let (mut totals, mut due, mut is_held_up) = (Totals::default(), self.first, false);
        while due < self.end {
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.stop.cancelled() => break,
            }
            if is_held_up {
                totals.held_up += 1;
            } else {
                totals.delays.push(due.elapsed());
            }
            while let Ok(arrival) = self.arrivals.try_recv() {
                totals.unexpected(arrival);
            }
            self.send(&mut totals).await;
            let next = due + self.period;
            is_held_up = next < Instant::now();
            // What could not be sent in time is not made up for.
            due = next.max(Instant::now());
        }
        while let Ok(Some(arrival)) = timeout(LAST_WAIT, self.arrivals.recv()).await {
            totals.unexpected(arrival);
        }
        totals
    }

    /// Sends an uplink and waits until it is delivered.
    async fn send(&mut self, totals: &mut Totals) {
        let sent = Instant::now();
        if let Err(error) = self.handler.simulate_uplink(self.uplink.clone()).await {
            totals.refused += 1;
            totals.refusal = Some(error.to_string());
            return;
        }
        totals.sent += 1;
        let delivered = timeout(self.timeout, async {
            loop {
                match self.arrivals.recv().await {
                    Some(Arrival::Uplink(arrived)) => return Some(arrived),
                    Some(Arrival::Failure) => totals.failures += 1,
                    None => return None,
                }
            }
        });
        match delivered.await {
            Ok(Some(arrived)) => totals.latencies.push(arrived.duration_since(sent)),
            _ => totals.lost += 1,
        }
    }
}

impl Totals {
    /// A message while no uplink is on its way.
    fn unexpected(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Failure => self.failures += 1,
            Arrival::Uplink(_) if self.lost > 0 => {
                self.lost -= 1;
                self.late += 1;
            }
            Arrival::Uplink(_) => self.duplicates += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_late_is_no_duplicate() {
        let mut totals = Totals { sent: 3, lost: 1, ..Totals::default() };
        let uplink = Arrival::Uplink(Instant::now());
        for arrival in [uplink, uplink, Arrival::Failure] {
            totals.unexpected(arrival);
        }
        assert_eq!((totals.lost, totals.late, totals.duplicates, totals.failures), (0, 1, 1, 1));
    }
}
