//! A memory to run in, and the instance over it: what a message meets is what was laid out for it.

use std::io;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Error;
use crate::image::Image;
use crate::instance::{Instance, Run, Task};
use crate::memory::{Mapping, Pristine};
use crate::module::Module;

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

    /// How long its memory is.
    pub(crate) fn len(&self) -> usize {
        self.len
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
    pub(crate) fn run(&mut self, engine: &Engine, over: Option<&Module>, task: &Task<'_>) -> Result<Run, Error> {
        // From before the memory is made: that writes to pages too.
        let faults = engine.faults();
        if !self.clean || over.is_some() {
            self.make(engine, over).map_err(Error::Memory)?;
        }
        self.clean = false;
        let mut instance = match self.instance.take() {
            Some(instance) => instance,
            None => Instance::start(engine, &self.mapping, self.len)?,
        };
        let run = instance.run(engine, task);
        self.still = faults.is_some() && faults == engine.faults();
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
