//! Many simulated uplinks at once, over gRPC.

use std::{pin::Pin, sync::Arc};

use api::{
    handler::SimulatedUplinkMessage,
    uplink::{UplinkAnswer, uplink_manager_server::UplinkManager},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use server::{auth::Caller, grpc::split, serve::PartTurns};
use tokio::time::sleep;
use tonic::{Code, Request, Response, Status, Streaming};
use types::{AppId, Clock};

use super::Service;
use crate::{
    Error,
    api::{
        operations::SimulatedUplink,
        wire::{app_id, uplinks::messages},
    },
    uplink::batch::{LINE_BYTES_MAX, Line, PAUSE_MAX},
};

type Answers = Pin<Box<dyn Stream<Item = Result<UplinkAnswer, Status>> + Send>>;

#[tonic::async_trait]
impl UplinkManager for Service {
    type SimulateUplinksStream = Answers;

    /// The response begins at once: a client may wait for that before it sends.
    async fn simulate_uplinks(
        &self,
        request: Request<Streaming<SimulatedUplinkMessage>>,
    ) -> Result<Response<Answers>, Status> {
        let turns = PartTurns::in_extensions(request.extensions());
        let (caller, sent) = split(request)?;
        let begun = self.clone().begin(caller, turns, sent);
        Ok(Response::new(Box::pin(stream::once(begun).try_flatten())))
    }
}

impl Service {
    /// Begins the batch with the first message, which says whose it is.
    async fn begin(
        self,
        caller: Caller,
        turns: PartTurns,
        mut sent: Streaming<SimulatedUplinkMessage>,
    ) -> Result<Answers, Status> {
        let first = tokio::select! {
            first = sent.message() => first.map_err(|status| unreadable(&status))?,
            () = turns.stopping() => return Err(Error::Stopping.into()),
            () = sleep(PAUSE_MAX) => return Err(Error::Paused { wait_s: PAUSE_MAX.as_secs() }.into()),
        };
        let Some(first) = first else { return Ok(Box::pin(stream::empty())) };
        let application = app_id(&first.app_id)?;
        let batch = self.operations.simulate_uplinks(caller, application.clone(), turns).await?;
        let clock = self.operations.clock.clone();
        let lines = stream::iter([Ok(first)]).chain(sent).zip(stream::iter(1..)).map(move |(message, place)| {
            message.map(|message| line((&application, &clock), place, message)).map_err(|status| unreadable(&status))
        });
        let answers =
            batch.handle(Box::pin(lines)).map(|event| Ok::<_, Status>(stream::iter(messages(event)?).map(Ok)));
        Ok(Box::pin(answers.try_flatten()))
    }
}

fn line((app_id, clock): (&AppId, &Arc<dyn Clock>), place: u64, mut message: SimulatedUplinkMessage) -> Line {
    let bytes = message.app_id.len() + message.dev_id.len() + message.payload.len();
    if message.app_id.is_empty() {
        message.app_id = app_id.to_string();
    }
    let uplink = if message.app_id == app_id.as_str() {
        SimulatedUplink::try_from(message)
    } else {
        Err(Error::invalid(
            "app_id",
            format_args!("the first message says `{app_id}`, this one says `{}`", message.app_id),
        ))
    };
    SimulatedUplink::line(place, bytes, uplink, clock.now())
}

/// The error for a message that cannot be read.
fn unreadable(status: &Status) -> Error {
    match status.code() {
        Code::OutOfRange => Error::LineTooLong { bytes_max: LINE_BYTES_MAX },
        _ => Error::invalid("Message", status.message()),
    }
}
