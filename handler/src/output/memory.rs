//! An output that keeps the latest messages, for benches and tests.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Message, Output};

/// Keeps the latest messages in memory; with room for none it is a null output.
#[derive(Debug, Default)]
pub struct MemoryOutput {
    messages: Mutex<VecDeque<Message>>,
    messages_max: usize,
}

impl MemoryOutput {
    /// Keeps up to `messages_max` messages, then forgets the oldest.
    pub fn new(messages_max: usize) -> Self {
        Self { messages: Mutex::default(), messages_max }
    }

    /// Takes out what was published since the last time, oldest first.
    pub fn take(&self) -> Vec<Message> {
        self.messages().drain(..).collect()
    }

    fn messages(&self) -> MutexGuard<'_, VecDeque<Message>> {
        // A panic elsewhere cannot leave a queue half changed.
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for MemoryOutput {
    fn publish(&self, message: Message) {
        if self.messages_max == 0 {
            return;
        }
        let mut messages = self.messages();
        if messages.len() == self.messages_max {
            messages.pop_front();
        }
        messages.push_back(message);
    }
}
