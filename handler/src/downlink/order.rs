//! What comes for one device is worked on in the order in which it came; devices do not wait for each other.

use std::{collections::HashMap, future::Future};

use tokio::sync::oneshot::{self, error::TryRecvError};
use types::{AppId, DevId};

use crate::output::mqtt::PublishedDownlink;

/// Of how many devices the last arrival is remembered before those that are done with are forgotten.
const DEVICES_KEPT: usize = 512;

/// The last arrival of each device.
#[derive(Default)]
pub(super) struct Order {
    last: HashMap<(AppId, DevId), oneshot::Receiver<()>>,
}

/// A place behind what came before for the same device. The next one waits until it is dropped.
pub(super) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Order {
    /// The turn of an arrival; to be taken in the order in which they came.
    pub(super) fn turn(&mut self, downlink: &PublishedDownlink) -> Turn {
        if self.last.len() >= DEVICES_KEPT {
            self.last.retain(|_, done| matches!(done.try_recv(), Err(TryRecvError::Empty)));
        }
        let (done, after) = oneshot::channel();
        let before = self.last.insert((downlink.app_id.clone(), downlink.dev_id.clone()), after);
        Turn { before, _done: done }
    }
}

impl Turn {
    /// Does this when it is its turn.
    pub(super) async fn then(mut self, work: impl Future<Output = ()>) {
        if let Some(before) = self.before.take() {
            // Nothing is ever sent: it ends with the turn before.
            let _ = before.await;
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
    async fn one_device_keeps_its_order_and_holds_up_no_other() {
        let (mut order, done) = (Order::default(), Arc::new(Mutex::new(Vec::new())));
        let turns: Vec<Turn> = ["one", "one", "two", "one"].map(|dev_id| order.turn(&downlink(dev_id))).into();
        let tasks: Vec<_> = turns.into_iter().enumerate().collect();
        // Begun the other way round.
        let tasks = tasks.into_iter().rev().map(|(number, turn)| {
            let done = Arc::clone(&done);
            tokio::spawn(turn.then(async move { done.lock().unwrap().push(number) }))
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
