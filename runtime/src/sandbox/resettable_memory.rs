//! A linear memory that is restored between messages, and the instance that runs in it.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Instant;

use super::host::Host;
use super::instance::{Instance, Run, Task, deadline};
use super::protection::Protection;
use crate::error::Error;
use crate::load::module::Module;
use crate::memory::image::Image;
use crate::memory::mapping::{Baseline, Mapping};

/// One linear memory, mapped from one image. Each run names the module to apply to it, if any.
pub(crate) struct ResettableMemory {
    image: Arc<Image>,
    len: usize,
    mapping: Arc<Mapping>,
    /// None after a message that grew its memory or trapped: neither can be undone within an instance.
    instance: Option<Instance>,
    /// True if the memory equals the image, so that a message can start.
    is_clean: bool,
    /// True if the thread met no page fault from before the last message was prepared until its end, or the memory was
    /// protected.
    no_faults: bool,
    protection: Protection,
}

impl ResettableMemory {
    /// A memory of `len` bytes that starts with `image`.
    pub(crate) fn new(host: &Host, image: Arc<Image>, len: usize) -> io::Result<Self> {
        let mapping = host.map(&image, len)?;
        Ok(Self {
            image,
            len,
            mapping,
            instance: None,
            is_clean: true,
            no_faults: false,
            protection: Protection::default(),
        })
    }

    /// Restores the memory to the image with `module` applied.
    pub(crate) fn restore(&mut self, host: &Host, module: Option<&Module>) -> io::Result<()> {
        host.restore(&self.mapping, &Baseline { image: &self.image, len: self.len, module }, self.no_faults)?;
        self.is_clean = module.is_none();
        // Whether restoring met page faults shows only after the next message.
        self.no_faults = false;
        Ok(())
    }

    /// Runs one message with `module` applied to the image. After an error this must not be used again.
    pub(crate) fn run(
        &mut self,
        host: &Host,
        faults: &mut FaultCounter,
        module: Option<&Module>,
        task: &Task<'_>,
    ) -> Result<Run, Error> {
        if !self.is_clean || module.is_some() {
            self.restore(host, module).map_err(Error::Memory)?;
        }
        if task.is_recorded() {
            // It must not run twice.
            self.mapping.unprotect().map_err(Error::Memory)?;
        }
        let run = self.run_once(host, faults, task)?;
        if run.met_protection {
            // The message has changed nothing but this memory, which has been mapped anew.
            self.protection.postpone();
            let limit = deadline(Instant::now(), task.limits.time_ms_max);
            let again = self.run_once(host, faults, &Task { deadline: limit, recorder: Cell::default(), ..*task })?;
            return Ok(Run { stopped_fuel: run.fuel, ..again });
        }
        if module.is_none()
            && !self.mapping.is_protected()
            && self.protection.is_due(self.no_faults, host.protections())
        {
            self.protect();
        }
        Ok(run)
    }

    fn run_once(&mut self, host: &Host, faults: &mut FaultCounter, task: &Task<'_>) -> Result<Run, Error> {
        self.is_clean = false;
        let is_protected = self.mapping.is_protected();
        let mut instance = match self.instance.take() {
            Some(instance) => instance,
            None => Instance::start(host, &self.mapping, self.len)?,
        };
        let run = instance.run(host, task, is_protected);
        self.no_faults = if is_protected { faults.skip() } else { faults.none_since_last_check(host) };
        if instance.has_trapped() {
            drop(instance);
            self.mapping.map_image(&self.image, self.len).map_err(Error::Memory)?;
        } else {
            self.instance = instance.is_reusable(self.len).then_some(instance);
        }
        Ok(run)
    }

    fn protect(&mut self) {
        match self.mapping.protect_unchanged() {
            Ok(true) => {}
            Ok(false) => self.protection.postpone(),
            Err(error) => {
                tracing::warn!(%error, "cannot protect the memory of a sandbox: its messages take a little longer");
                self.protection.postpone();
            }
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<u8> {
        self.mapping.snapshot()
    }
}

/// Counts the page faults of a thread between two messages.
///
/// Checking once after each message costs half as much as checking before it too. Faults between two messages count for
/// the second one, which is safe: at worst the kernel is asked for changed pages once too often.
#[derive(Default)]
pub(crate) struct FaultCounter {
    last: Option<(ThreadId, u64)>,
    pub(crate) messages_without: u64,
    pub(crate) messages_protected: u64,
}

impl FaultCounter {
    /// Counts a message of a protected memory, which needs no check.
    fn skip(&mut self) -> bool {
        self.messages_protected += 1;
        true
    }

    /// Returns true if this thread met no page fault since the last call on it.
    fn none_since_last_check(&mut self, host: &Host) -> bool {
        let now = host.faults().map(|faults| (thread::current().id(), faults));
        let before = std::mem::replace(&mut self.last, now);
        let none = now.is_some() && now == before;
        self.messages_without += u64::from(none);
        none
    }
}
