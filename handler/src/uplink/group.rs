//! Several uplinks of one application that are handled together: one read of their devices, one hand-over to a worker
//! for those with the same functions. They are recorded and published in their order, as if they came one by one.

use std::{collections::VecDeque, sync::Arc};

use futures::{StreamExt, future::join_all, stream};
use runtime::{Priority, SourcesHash};
use server::usage::Usage;
use tokio::sync::oneshot;
use types::Kinded;

use super::{DecodedUplink, FoundUplink, Frame, Handled, Reader, SentUplink, Uplinks};
use crate::{
    Error,
    output::PublishReceipt,
    payload::{Decoded, ExpectedFuel, Payload, Run},
    status::metrics,
};

/// Number of uplinks that are published before other tasks go on.
const SENT_TOGETHER: usize = 16;

/// Things that uplinks of a group have in common.
pub(crate) struct Group<'a> {
    /// Their cost is added here.
    pub(crate) usage: &'a Usage,
    /// The reader of the outcomes.
    pub(crate) reader: Reader,
    /// The fuel that each of them is expected to use.
    pub(crate) fuel: &'a ExpectedFuel,
    /// Resolves, or is closed, when those before them have been published.
    pub(crate) previous: oneshot::Receiver<()>,
    /// Is dropped when these have been published.
    pub(crate) published: oneshot::Sender<()>,
}

/// The functions that an application has for a device: live ones, or those of a candidate.
#[derive(PartialEq, Eq)]
struct ChosenFunctions {
    hash: SourcesHash,
    is_candidate: bool,
}

impl Uplinks {
    /// Handles frames of one application, and returns what became of each, in their order.
    pub(crate) async fn handle_several(&self, frames: Vec<Frame>, group: Group<'_>) -> Vec<Result<Handled, Error>> {
        let Group { usage, reader, fuel, previous, published } = group;
        let found = self.look_up_several(frames).await;
        let made = self.decode_several(found, fuel, Run { priority: Priority::Live, usage }).await;
        // Closed if the group before has ended in another way.
        _ = previous.await;
        let mut sent = Vec::with_capacity(made.len());
        for (number, made) in made.into_iter().enumerate() {
            if number > 0 && number.is_multiple_of(SENT_TOGETHER) {
                tokio::task::yield_now().await;
            }
            sent.push(made.map(|made| self.send(made, reader)));
        }
        drop(published);
        let handled = self.settle_several(sent).await;
        let errors = handled.iter().filter_map(|handled| handled.as_ref().err());
        errors.for_each(|error| metrics::uplink_dropped(error.kind()));
        handled
    }

    async fn settle_several(&self, sent: Vec<Result<SentUplink, Error>>) -> Vec<Result<Handled, Error>> {
        let is_quick = sent.iter().flatten().all(SentUplink::is_quick);
        let settled = sent.into_iter().map(async |sent| self.settle(sent?).await);
        if is_quick {
            // Most are in history when the first of them is: the others need no timer.
            return stream::iter(settled).then(|settled| settled).collect().await;
        }
        join_all(settled).await
    }

    async fn look_up_several(&self, frames: Vec<Frame>) -> VecDeque<Result<FoundUplink, Error>> {
        let Some(app_id) = frames.first().map(|frame| frame.app_id.clone()) else { return VecDeque::new() };
        let dev_ids: Vec<_> = frames.iter().map(|frame| &frame.dev_id).collect();
        match self.devices.get_several_with_summary(&app_id, &dev_ids).await {
            Ok((application, devices)) => {
                let find = |(frame, device): (Frame, Result<_, Error>)| {
                    device.map(|device| FoundUplink::new(frame, device, application.clone()))
                };
                frames.into_iter().zip(devices).map(find).collect()
            }
            Err(error) => {
                let error = Arc::new(error);
                frames.iter().map(|_| Err(Error::Shared(Arc::clone(&error)))).collect()
            }
        }
    }

    /// Decodes those that follow each other and have the same functions together.
    async fn decode_several(
        &self,
        mut found: VecDeque<Result<FoundUplink, Error>>,
        fuel: &ExpectedFuel,
        run: Run<'_>,
    ) -> Vec<Result<DecodedUplink, Error>> {
        let mut made = Vec::with_capacity(found.len());
        while let Some(first) = found.pop_front() {
            match first {
                Ok(first) => {
                    let functions = first.functions();
                    let is_alike = |found: &mut Result<FoundUplink, Error>| {
                        found.as_ref().is_ok_and(|found| found.functions() == functions)
                    };
                    let mut alike = VecDeque::from([first]);
                    while let Some(Ok(next)) = found.pop_front_if(is_alike) {
                        alike.push_back(next);
                    }
                    self.decode_alike(alike, fuel, run, &mut made).await;
                }
                Err(error) => made.push(Err(error)),
            }
        }
        made
    }

    /// Decodes uplinks with the same functions.
    async fn decode_alike(
        &self,
        mut waiting: VecDeque<FoundUplink>,
        fuel: &ExpectedFuel,
        run: Run<'_>,
        made: &mut Vec<Result<DecodedUplink, Error>>,
    ) {
        while let Some(first) = waiting.pop_front() {
            let payloads: Vec<&Payload> = std::iter::once(&first).chain(&waiting).map(|found| &found.payload).collect();
            let decoded = match payloads.len() {
                1 => Ok(Vec::new()),
                _ => self.payloads.decode_several_if_loaded(&first.application, &payloads, fuel, run).await,
            };
            match decoded {
                // Alone, as any other: the functions are loaded with it.
                Ok(decoded) if decoded.is_empty() => made.push(self.decode(first, run).await),
                Ok(decoded) => {
                    let mut next = Some(first);
                    for decoded in decoded {
                        let found = next.take().or_else(|| waiting.pop_front());
                        made.extend(found.map(|found| Ok(found.with(decoded))));
                    }
                }
                Err(busy) => {
                    made.extend((0..=waiting.len()).map(|_| Err(Error::Busy(busy))));
                    waiting.clear();
                }
            }
        }
    }
}

impl SentUplink {
    /// Returns true if it is settled once it is in history.
    fn is_quick(&self) -> bool {
        let needs_excerpt = self.outcome == history::Outcome::Failed && self.result.is_some();
        !needs_excerpt && self.receipts.iter().all(PublishReceipt::is_stored)
    }
}

impl FoundUplink {
    /// The functions that decode it.
    fn functions(&self) -> ChosenFunctions {
        ChosenFunctions { hash: self.application.functions_hash, is_candidate: self.application.is_candidate }
    }

    fn with(self, decoded: Decoded) -> DecodedUplink {
        let Self { application, device, payload } = self;
        DecodedUplink { application, device, payload, decoded }
    }
}
