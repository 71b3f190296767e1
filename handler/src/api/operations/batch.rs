//! Many simulated uplinks at once.

use futures::Stream;
use server::{auth::Caller, serve::PartTurns};
use types::{AppId, Timestamp};

use super::{Operations, SimulatedUplink};
use crate::{
    Error,
    payload::ExpectedFuel,
    uplink::batch::{self, BATCH_BYTES_MAX, BatchParts, Event, Line},
};

/// A batch that the caller may send, and nothing has come of yet.
pub(crate) struct Batch {
    parts: BatchParts,
    turns: PartTurns,
}

impl Operations {
    /// Begins a batch of uplinks, each of which is handled as [`Operations::simulate_uplink`] handles one.
    pub(crate) async fn simulate_uplinks(
        &self,
        caller: Caller,
        app_id: AppId,
        mut turns: PartTurns,
    ) -> Result<Batch, Error> {
        self.access.allow_uplinks(caller.clone(), &app_id, 0).await?;
        turns.charge_memory(BATCH_BYTES_MAX)?;
        let parts = BatchParts {
            access: self.access.clone(),
            uplinks: self.uplinks.clone(),
            traffic: self.component.traffic.clone(),
            clock: self.clock.clone(),
            caller,
            app_id,
            fuel: ExpectedFuel::default(),
        };
        Ok(Batch { parts, turns })
    }
}

impl Batch {
    /// Handles the uplinks, and returns what becomes of them, in their order. An error ends the batch.
    pub(crate) fn handle(
        self,
        lines: impl Stream<Item = Result<Line, Error>> + Send + Unpin + 'static,
    ) -> impl Stream<Item = Event> + Send + 'static {
        batch::handle(self.parts, self.turns, lines)
    }
}

impl SimulatedUplink {
    /// The uplink at this place of a batch, which took so many bytes; or why there is none.
    pub(crate) fn line(number: u64, bytes: usize, sent: Result<Self, Error>, now: Timestamp) -> Line {
        Line { number, bytes, frame: sent.and_then(|uplink| uplink.into_frame(now)) }
    }
}
