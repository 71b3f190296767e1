//! Waits until receivers have room for more than live messages.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{Message, Output, Receivers, Room};
use crate::Error;

/// Maximum number of checks for room, and the pause between them.
const ATTEMPTS_MAX: usize = 100;
const WAIT: Duration = Duration::from_millis(100);

/// The room that receivers have.
pub(crate) struct Rooms {
    output: Arc<dyn Output>,
    to: Receivers,
    /// The receivers that had no room for so long that nobody waits for them any more.
    given_up: BTreeSet<String>,
}

impl Rooms {
    pub(crate) fn new(output: Arc<dyn Output>, to: Receivers) -> Self {
        Self { output, to, given_up: BTreeSet::new() }
    }

    /// Waits until all who get these messages have room for one, but not for long: then the others get them.
    /// [`Error::NoRoom`] if nobody has room.
    pub(crate) async fn wait(&mut self, messages: &[Message]) -> Result<Room, Error> {
        let mut attempts = 1;
        loop {
            let room = self.output.room(messages, &self.to).await?;
            self.given_up.retain(|receiver| room.full.contains(receiver));
            if room.full.is_empty() || (room.receivers > 0 && room.full == self.given_up) {
                return Ok(unless_nobody(room));
            }
            if attempts >= ATTEMPTS_MAX {
                self.given_up.clone_from(&room.full);
                let names = || room.full.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                return if room.receivers == 0 { Err(Error::NoRoom(names())) } else { Ok(room) };
            }
            attempts += 1;
            sleep(WAIT).await;
        }
    }

    /// Returns true if any receiver gets a message, with room for it or without.
    pub(crate) async fn have_receiver(&self, message: &Message) -> Result<bool, Error> {
        let room = self.output.room(std::slice::from_ref(message), &self.to).await?;
        Ok(room.receivers > 0 || !room.full.is_empty())
    }
}

/// If nobody gets the messages, there is room for any number.
fn unless_nobody(room: Room) -> Room {
    if room.receivers > 0 { room } else { Room { messages: usize::MAX, bytes: usize::MAX, ..room } }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;

    use super::*;
    use crate::output::PublishReceipt;

    /// Receivers whose room is what a test says, one answer after the other, and then the last again.
    struct Scripted(Mutex<Vec<Room>>, AtomicUsize);

    #[async_trait]
    impl Output for Scripted {
        fn publish(&self, _: Message) -> PublishReceipt {
            PublishReceipt::at_once()
        }

        async fn room(&self, _: &[Message], _: &Receivers) -> Result<Room, Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut rooms = self.0.lock().unwrap();
            let room = if rooms.len() > 1 { rooms.remove(0) } else { rooms[0].clone() };
            Ok(room)
        }
    }

    fn room(receivers: usize, full: &[&str]) -> Room {
        let full = full.iter().map(|name| (*name).to_owned()).collect();
        Room { receivers, messages: 1, bytes: 1, full }
    }

    fn rooms(rooms: &[Room]) -> (Rooms, Arc<Scripted>) {
        let output = Arc::new(Scripted(Mutex::new(rooms.to_vec()), AtomicUsize::new(0)));
        (Rooms::new(output.clone(), Receivers::All), output)
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_until_all_have_room() {
        let (mut rooms, output) = rooms(&[room(1, &["slow"]), room(1, &["slow"]), room(2, &[])]);
        assert_eq!(rooms.wait(&[]).await.unwrap(), room(2, &[]));
        assert_eq!(output.1.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_without_room_is_waited_for_once_and_again_when_it_had_some() {
        let (mut rooms, output) = rooms(&[room(1, &["dead"])]);
        let asked = || output.1.swap(0, Ordering::Relaxed);
        assert_eq!(rooms.wait(&[]).await.unwrap().full.len(), 1);
        assert_eq!(asked(), ATTEMPTS_MAX);
        rooms.wait(&[]).await.unwrap();
        assert_eq!(asked(), 1);
        *output.0.lock().unwrap() = vec![room(2, &[]), room(1, &["dead"])];
        rooms.wait(&[]).await.unwrap();
        rooms.wait(&[]).await.unwrap();
        assert_eq!(asked(), 1 + ATTEMPTS_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_if_nobody_has_room_but_not_if_nobody_is_there() {
        let (mut rooms, _) = rooms(&[room(0, &["one", "two"])]);
        assert!(matches!(rooms.wait(&[]).await, Err(Error::NoRoom(names)) if names == "one, two"));
        let (mut rooms, _) = self::rooms(&[room(0, &[])]);
        assert_eq!(rooms.wait(&[]).await.unwrap().messages, usize::MAX);
    }
}
