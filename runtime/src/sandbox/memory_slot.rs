//! A memory to run in, and the instance over it: what a message meets is what was laid out for it.

use std::io;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::engine::Engine;
use crate::error::Error;
use crate::load::module::Module;
use crate::memory::image::Image;
use crate::memory::mapping::{Mapping, Pristine};
use crate::sandbox::instance::{Instance, Run, Task};

/// One linear memory over one image. Whoever runs in it says each time what is to lie over the image.
pub(crate) struct Bed {
    image: Arc<Image>,
    len: usize,
    mapping: Arc<Mapping>,
    /// Absent when the last message grew its memory or trapped: neither can be undone inside an instance.
    instance: Option<Instance>,
    /// Whether the memory is the image and nothing else, so that a message may begin.
    clean: bool,
    /// Whether the thread met no page fault from before the last message, and what was laid out for it, until its end.
    still: bool,
}

impl Bed {
    /// A memory of `len` bytes that begins with `image`.
    pub(crate) fn new(engine: &Engine, image: Arc<Image>, len: usize) -> io::Result<Self> {
        let mapping = engine.mapping(&image, len)?;
        Ok(Self { image, len, mapping, instance: None, clean: true, still: false })
    }

    /// Makes the memory the image, and `over` on top of it, whatever the last message left there.
    pub(crate) fn make(&mut self, engine: &Engine, over: Option<&Module>) -> io::Result<()> {
        engine.restore(&self.mapping, &Pristine { image: &self.image, len: self.len, over }, self.still)?;
        self.clean = over.is_none();
        // Only a message can find out that this met no page fault either.
        self.still = false;
        Ok(())
    }

    /// Runs one message where `over` lies on the image. After an error the bed must not be used again.
    pub(crate) fn run(
        &mut self,
        engine: &Engine,
        faults: &mut Faults,
        over: Option<&Module>,
        task: &Task<'_>,
    ) -> Result<Run, Error> {
        if !self.clean || over.is_some() {
            self.make(engine, over).map_err(Error::Memory)?;
        }
        self.clean = false;
        let mut instance = match self.instance.take() {
            Some(instance) => instance,
            None => Instance::start(engine, &self.mapping, self.len)?,
        };
        let run = instance.run(engine, task);
        self.still = faults.were_none(engine);
        if instance.has_trapped() {
            drop(instance);
            self.mapping.lay(&self.image, self.len).map_err(Error::Memory)?;
        } else {
            self.instance = instance.is_reusable(self.len).then_some(instance);
        }
        Ok(run)
    }

    /// A copy of the memory.
    pub(crate) fn snapshot(&self) -> Vec<u8> {
        self.mapping.snapshot()
    }
}

/// What a thread knew of its page faults at the end of its last message.
///
/// Asking then, and not before each message too, costs half as much. What the thread met between two messages counts for
/// the second, which is on the safe side: the kernel is asked once too often.
#[derive(Default)]
pub(crate) struct Faults {
    known: Option<(ThreadId, u64)>,
    /// Messages without any, for those who test that.
    pub(crate) without: u64,
}

impl Faults {
    /// Whether the thread met none since this was last asked on it.
    fn were_none(&mut self, engine: &Engine) -> bool {
        let now = engine.faults().map(|faults| (thread::current().id(), faults));
        let before = std::mem::replace(&mut self.known, now);
        let none = now.is_some() && now == before;
        self.without += u64::from(none);
        none
    }
}
