//! Publications to many sessions, in parts that take turns with those of other owners. Whatever else there is to do goes
//! between them.

use std::sync::Arc;

use fair_queue::{Costs, FairQueue, Turn};
use parking_lot::Mutex;
use tokio::{runtime::Handle, task::yield_now};

use super::{
    application::{Application, DeliveredPart},
    applications::Applications,
};
use crate::session::durable::Durable;

/// Brings the publications of applications to their sessions that are too large to be brought there at once.
pub(super) struct FanOut {
    applications: Arc<Applications>,
    durable: Option<Arc<Durable>>,
    turns: Mutex<Turns>,
}

struct Turns {
    /// Each application once, as long as it has such publications.
    queue: FairQueue<Arc<Application>>,
    is_running: bool,
}

impl FanOut {
    pub(super) fn new(applications: Arc<Applications>, durable: Option<Arc<Durable>>) -> Self {
        let queue = FairQueue::new(Costs { job: 1, slack: 0 });
        Self { applications, durable, turns: Mutex::new(Turns { queue, is_running: false }) }
    }

    /// Goes on with the publications of an application when it is its turn.
    pub(super) fn start(self: &Arc<Self>, application: Arc<Application>) {
        let Ok(runtime) = Handle::try_current() else { return self.finish(&application) };
        let mut turns = self.turns.lock();
        turns.queue.push(&application.owner().to_string().into(), 0, application);
        if !std::mem::replace(&mut turns.is_running, true) {
            let this = Arc::clone(self);
            runtime.spawn(async move { this.run().await });
        }
    }

    /// Finishes the publications of an application now.
    pub(super) fn finish(&self, application: &Arc<Application>) {
        while self.go_on(application).has_more {}
    }

    async fn run(&self) {
        while let Some((turn, application)) = self.next() {
            let DeliveredPart { cost, has_more } = self.go_on(&application);
            self.done(turn, u64::try_from(cost).unwrap_or(u64::MAX), has_more.then_some(application));
            yield_now().await;
        }
    }

    fn done(&self, turn: Turn, cost: u64, unfinished: Option<Arc<Application>>) {
        let mut turns = self.turns.lock();
        turns.queue.done(turn, Some(cost));
        if let Some(application) = unfinished {
            turns.queue.push(&application.owner().to_string().into(), 0, application);
        }
    }

    fn next(&self) -> Option<(Turn, Arc<Application>)> {
        let mut turns = self.turns.lock();
        let next = turns.queue.pop(0, |_| true);
        turns.is_running = next.is_some();
        next
    }

    /// Delivers a part of what an application has.
    fn go_on(&self, application: &Arc<Application>) -> DeliveredPart {
        let part = application.publish_more(self.durable.as_deref());
        if application.is_exceeded() {
            self.applications.make_room(application);
        }
        if let Some(durable) = &self.durable {
            application.start_saving(durable);
        }
        part
    }
}
