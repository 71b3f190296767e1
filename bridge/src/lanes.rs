//! Lanes: the messages of one device are worked on one after the other, those of different devices at once.

use std::{
    collections::{HashMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{FutureExt, future::BoxFuture};

/// What is done with each message.
pub(crate) type Work<T> = Arc<dyn Fn(T) -> BoxFuture<'static, ()> + Send + Sync>;

/// The waiting messages of each device that has any. Whoever adds messages bounds their number.
pub(crate) struct Lanes<T> {
    waiting: Arc<Mutex<HashMap<Box<str>, VecDeque<T>>>>,
    work: Work<T>,
}

impl<T: Send + 'static> Lanes<T> {
    pub(crate) fn new(work: Work<T>) -> Self {
        Self { waiting: Arc::default(), work }
    }

    /// Adds a message to the lane of `device`, and starts to work on the lane if nobody does.
    pub(crate) fn add(&self, device: &str, message: T) {
        let mut waiting = lock(&self.waiting);
        if let Some(lane) = waiting.get_mut(device) {
            return lane.push_back(message);
        }
        waiting.insert(device.into(), VecDeque::new());
        drop(waiting);
        tokio::spawn(run(self.waiting.clone(), self.work.clone(), device.into(), message));
    }
}

async fn run<T>(waiting: Arc<Mutex<HashMap<Box<str>, VecDeque<T>>>>, work: Work<T>, device: Box<str>, first: T) {
    let mut next = Some(first);
    while let Some(message) = next {
        // A panic, which has been logged, ends its message only.
        if AssertUnwindSafe(work(message)).catch_unwind().await.is_err() {
            crate::metrics::dropped("panic");
        }
        next = take(&mut lock(&waiting), &device);
    }
}

/// The next message of a lane; removes the lane when it is empty.
fn take<T>(waiting: &mut HashMap<Box<str>, VecDeque<T>>, device: &str) -> Option<T> {
    let message = waiting.get_mut(device).and_then(VecDeque::pop_front);
    if message.is_none() {
        waiting.remove(device);
    }
    message
}

fn lock<T>(waiting: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves the queues usable.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
        while !lock(&lanes.waiting).is_empty() {
            tokio::task::yield_now().await;
        }
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
