//! Many simulated uplinks at once.

use std::sync::Arc;

use api::{
    handler::SimulatedUplinkMessage,
    uplink::{UplinkAnswer, uplink_manager_client::UplinkManagerClient as Stub},
};
use futures::{Stream, StreamExt, stream};
use tokio::sync::Semaphore;
use tonic::Streaming;

use super::HandlerClient;
use crate::{
    Result,
    transport::grpc::{Peer, authorized},
};

/// Maximum number of uplinks that are sent ahead of their answers.
///
/// Uplinks that come one by one each get a frame of their own, and h2 closes a connection on which too many small ones
/// wait to be read: they take up to 256 bytes each, and together half the window of 128 KiB that the handler gives a
/// connection. The handler takes up to 192 uplinks before it answers the first ones.
const AHEAD_MAX: usize = 256;
/// Number of answers after which as many more are sent: one at a time, each would be a frame.
const SENT_TOGETHER: usize = 64;

/// The answers to the uplinks of a batch, in their order.
#[derive(Debug)]
pub struct UplinkAnswers {
    answers: Streaming<UplinkAnswer>,
    peer: Peer,
    room: Room,
}

/// Room for uplinks that are sent ahead of their answers. Without it, no more are sent.
#[derive(Debug)]
struct Room {
    places: Arc<Semaphore>,
    /// Number of answers whose places nobody has yet.
    answered: usize,
}

impl HandlerClient {
    /// Sends uplinks of the application that the first one names, as if its devices had sent them. None is sent again.
    ///
    /// Read the answers while they are sent: only 256 uplinks are sent ahead of them. Send one batch at a time. There
    /// is no time limit.
    pub async fn simulate_uplinks(
        &self,
        uplinks: impl Stream<Item = SimulatedUplinkMessage> + Send + 'static,
    ) -> Result<UplinkAnswers> {
        let room = Room::new();
        let request = authorized(within(Arc::clone(&room.places), uplinks), &self.credential)?;
        let mut stub = Stub::new(self.peer.channel());
        let response = stub.simulate_uplinks(request).await.map_err(|status| self.peer.failed(status))?;
        Ok(UplinkAnswers { answers: response.into_inner(), peer: self.peer.clone(), room })
    }
}

impl UplinkAnswers {
    /// Waits for the answer to the next uplink; none after the last one.
    pub async fn next(&mut self) -> Result<Option<UplinkAnswer>> {
        let answer = self.answers.message().await.map_err(|status| self.peer.failed(status))?;
        self.room.note_answer();
        Ok(answer)
    }
}

impl Room {
    fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(AHEAD_MAX)), answered: 0 }
    }

    fn note_answer(&mut self) {
        self.answered += 1;
        if self.answered == SENT_TOGETHER {
            self.answered = 0;
            self.places.add_permits(SENT_TOGETHER);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.places.close();
    }
}

/// The uplinks as there are places for them. None is taken before that.
fn within<Uplinks>(
    places: Arc<Semaphore>,
    uplinks: Uplinks,
) -> impl Stream<Item = SimulatedUplinkMessage> + Send + 'static
where
    Uplinks: Stream<Item = SimulatedUplinkMessage> + Send + 'static,
{
    stream::unfold((places, Box::pin(uplinks)), async |(places, mut uplinks)| {
        places.acquire().await.ok()?.forget();
        let uplink = uplinks.next().await?;
        Some((uplink, (places, uplinks)))
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// The number of uplinks that are sent before something has to wait.
    fn sent(uplinks: &mut (impl Stream<Item = SimulatedUplinkMessage> + Unpin)) -> usize {
        std::iter::from_fn(|| uplinks.next().now_or_never().flatten()).count()
    }

    #[test]
    fn so_many_uplinks_are_sent_ahead_of_their_answers_and_no_more() {
        let mut room = Room::new();
        let uplinks = stream::repeat(SimulatedUplinkMessage::default());
        let mut uplinks = Box::pin(within(Arc::clone(&room.places), uplinks));
        assert_eq!(sent(&mut uplinks), 256);
        (1..SENT_TOGETHER).for_each(|_| room.note_answer());
        assert_eq!(sent(&mut uplinks), 0, "a frame has several");
        room.note_answer();
        assert_eq!(sent(&mut uplinks), 64);
        drop(room);
        assert_eq!(uplinks.next().now_or_never(), Some(None), "nobody reads the answers");
    }
}
