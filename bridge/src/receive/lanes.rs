//! Lanes: the messages of one device are worked on one after the other, those of different devices at once.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};

/// Handles one message.
pub type LaneWork<T> = Arc<dyn Fn(T) -> BoxFuture<'static, ()> + Send + Sync>;

/// The waiting messages of each device that has any. Whoever adds messages bounds their number.
pub struct Lanes<T> {
    waiting: Arc<fair_queue::Lanes<String, T>>,
    work: LaneWork<T>,
}

impl<T: Send + 'static> Lanes<T> {
    /// No messages yet.
    pub fn new(work: LaneWork<T>) -> Self {
        Self { waiting: Arc::default(), work }
    }

    /// Adds a message to the lane of `device`, and starts to work on the lane if nobody does.
    pub fn add(&self, device: &str, message: T) {
        if self.waiting.add(device, message) {
            tokio::spawn(run(self.waiting.clone(), self.work.clone(), device.to_owned()));
        }
    }
}

/// Wraps `handle` and its state, `worker`, as the work of lanes.
pub fn work_of<W, T, F>(worker: W, handle: impl Fn(Arc<W>, T) -> F + Send + Sync + 'static) -> LaneWork<T>
where
    W: Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let worker = Arc::new(worker);
    Arc::new(move |message| Box::pin(handle(worker.clone(), message)))
}

/// Works on some messages in lanes of their own, so that the others of their device do not wait for them: those of which
/// `lane` returns the device.
pub fn apart<T: Send + 'static>(
    work: LaneWork<T>,
    lane: impl Fn(&T) -> Option<String> + Send + Sync + 'static,
) -> LaneWork<T> {
    let lanes = Lanes::new(work.clone());
    Arc::new(move |message| match lane(&message) {
        Some(device) => {
            lanes.add(&device, message);
            Box::pin(ready(()))
        }
        None => work(message),
    })
}

async fn run<T>(waiting: Arc<fair_queue::Lanes<String, T>>, work: LaneWork<T>, device: String) {
    while let Some(message) = waiting.next(device.as_str()) {
        // A panic, which has been logged, ends its message only.
        if AssertUnwindSafe(work(message)).catch_unwind().await.is_err() {
            crate::metrics::dropped("panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Semaphore, mpsc};

    use super::*;

    #[tokio::test]
    async fn keeps_the_order_of_a_device_and_does_not_wait_for_another() {
        let gate = Arc::new(Semaphore::new(0));
        let (sender, mut done) = mpsc::unbounded_channel();
        let (held, opened) = (gate.clone(), sender);
        let lanes = Lanes::new(Arc::new(move |(device, number): (&'static str, u32)| {
            let (gate, done) = (held.clone(), opened.clone());
            Box::pin(async move {
                if device == "slow" {
                    gate.acquire().await.unwrap().forget();
                }
                done.send((device, number)).unwrap();
            })
        }));
        for number in 0..3 {
            lanes.add("slow", ("slow", number));
            lanes.add("fast", ("fast", number));
        }
        for number in 0..3 {
            assert_eq!(done.recv().await, Some(("fast", number)));
        }
        gate.add_permits(3);
        for number in 0..3 {
            assert_eq!(done.recv().await, Some(("slow", number)));
        }
        while !lanes.waiting.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn messages_apart_hold_up_no_others_of_their_device() {
        let gate = Arc::new(Semaphore::new(0));
        let (sender, mut done) = mpsc::unbounded_channel();
        let held = gate.clone();
        let work: LaneWork<u32> = Arc::new(move |number| {
            let (gate, done) = (held.clone(), sender.clone());
            Box::pin(async move {
                if number >= 10 {
                    gate.acquire().await.unwrap().forget();
                }
                done.send(number).unwrap();
            })
        });
        let lanes = Lanes::new(apart(work, |number| (*number >= 10).then(|| "device".to_owned())));
        for number in [10, 1, 11, 2] {
            lanes.add("device", number);
        }
        let mut order = vec![done.recv().await, done.recv().await];
        gate.add_permits(2);
        order.extend([done.recv().await, done.recv().await]);
        assert_eq!(order, [1, 2, 10, 11].map(Some));
    }

    #[tokio::test]
    async fn a_panic_ends_its_message_only() {
        let (sender, mut done) = mpsc::unbounded_channel();
        let lanes = Lanes::new(Arc::new(move |number: u32| {
            let done = sender.clone();
            Box::pin(async move {
                assert!(number != 0, "the first one panics");
                done.send(number).unwrap();
            })
        }));
        lanes.add("device", 0);
        lanes.add("device", 1);
        assert_eq!(done.recv().await, Some(1));
    }
}
