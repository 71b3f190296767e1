//! Keeps the downlinks of one device in order, without making devices wait for each other.

use std::{collections::HashMap, future::Future};

use tokio::sync::oneshot::{self, error::TryRecvError};
use types::{AppId, DevId};

use crate::output::mqtt::PublishedDownlink;

/// How many devices are remembered before those without unfinished turns are forgotten.
const DEVICES_KEPT: usize = 512;

#[derive(Default)]
pub(super) struct Order {
    last: HashMap<(AppId, DevId), oneshot::Receiver<()>>,
}

/// A turn that begins when the previous one of the same device is dropped.
pub(super) struct Turn {
    previous: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Order {
    /// The turn of a downlink. Call this in the order of arrival.
    pub(super) fn turn(&mut self, downlink: &PublishedDownlink) -> Turn {
        if self.last.len() >= DEVICES_KEPT {
            self.last.retain(|_, done| matches!(done.try_recv(), Err(TryRecvError::Empty)));
        }
        let (done, next) = oneshot::channel();
        let previous = self.last.insert((downlink.app_id.clone(), downlink.dev_id.clone()), next);
        Turn { previous, _done: done }
    }
}

impl Turn {
    /// Runs `work` when the turn begins.
    pub(super) async fn run(mut self, work: impl Future<Output = ()>) {
        if let Some(previous) = self.previous.take() {
            // Nothing is ever sent: this ends when the previous turn is dropped.
            let _ = previous.await;
        }
        work.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;

    use super::*;

    fn downlink(dev_id: &str) -> PublishedDownlink {
        PublishedDownlink { app_id: "my-app".parse().unwrap(), dev_id: dev_id.parse().unwrap(), body: Bytes::new() }
    }

    #[tokio::test]
    async fn keeps_the_order_of_a_device_without_delaying_others() {
        let (mut order, done) = (Order::default(), Arc::new(Mutex::new(Vec::new())));
        let turns: Vec<Turn> = ["one", "one", "two", "one"].map(|dev_id| order.turn(&downlink(dev_id))).into();
        let tasks: Vec<_> = turns.into_iter().enumerate().collect();
        // Spawned in reverse.
        let tasks = tasks.into_iter().rev().map(|(number, turn)| {
            let done = Arc::clone(&done);
            tokio::spawn(turn.run(async move { done.lock().unwrap().push(number) }))
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(*done.lock().unwrap(), [2, 0, 1, 3]);
        for number in 0..2 * DEVICES_KEPT {
            drop(order.turn(&downlink(&format!("dev-{number}"))));
        }
        assert!(order.last.len() <= DEVICES_KEPT);
    }
}
