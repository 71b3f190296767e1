//! An output that records messages.

use std::sync::Mutex;

use handler::output::{Kept, Message, Output};

#[derive(Default)]
pub struct RecordingOutput(Mutex<Vec<Message>>);

impl RecordingOutput {
    /// Takes the messages that were published since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Output for RecordingOutput {
    fn publish(&self, message: Message) -> Kept {
        self.0.lock().unwrap().push(message);
        Kept::at_once()
    }
}
