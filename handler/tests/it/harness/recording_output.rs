//! An output that records messages.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use handler::output::{Message, Output, PublishReceipt};

#[derive(Default)]
pub struct RecordingOutput {
    messages: Mutex<Vec<Message>>,
    is_failing: AtomicBool,
}

impl RecordingOutput {
    /// Takes the messages that were published since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap())
    }

    /// From now on messages cannot be stored, or can be again.
    pub fn fail(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
    }
}

impl Output for RecordingOutput {
    fn publish(&self, message: Message) -> PublishReceipt {
        self.messages.lock().unwrap().push(message);
        if self.is_failing.load(Ordering::SeqCst) {
            return PublishReceipt::when(async {
                Err(store::Error::Unavailable { what: "store messages", source: None }.into())
            });
        }
        PublishReceipt::at_once()
    }
}
