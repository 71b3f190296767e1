//! Puts a memory back: what a message changed becomes again what the next one shall find.

use std::io;
use std::iter;
use std::ptr;

use rustix::mm::Advice;

use super::{Access, Mapping};
use crate::load::module::{self, Module, PAGE_BYTES};
use crate::memory::image::Image;
use crate::memory::page_scan::Scanner;
use crate::memory::reset::Reset;

/// Pages of their own that stay in memory between messages beside those of the module; beyond it all go back.
const RESIDENT_BYTES_MAX: usize = 1 << 20;
/// How often in a row nobody must have written to a page until it goes back to the system. Comparing it costs far less
/// than having it again, and where many take turns some set soon wants it.
const IDLE_MAX: u8 = 64;
/// Idle pages that go back together.
const IDLE_PAGES_MIN: usize = 8;
/// Messages of one function set in its own memory between two looks for idle pages.
const LOOK_EVERY: u32 = 8;

/// What a memory shall be before a message.
#[derive(Clone, Copy)]
pub(crate) struct Pristine<'a> {
    /// What is mapped.
    pub(crate) image: &'a Image,
    /// How long the memory is; behind the image it is zero.
    pub(crate) len: usize,
    /// What lies over the image.
    pub(crate) over: Option<&'a Module>,
}

impl<'a> Pristine<'a> {
    fn laid(&self) -> impl Iterator<Item = module::Page<'a>> + use<'a> {
        self.over.into_iter().flat_map(Module::pages)
    }

    fn laid_bytes(&self) -> usize {
        self.over.map_or(0, Module::changed_bytes)
    }
}

impl Mapping {
    /// Makes the memory what `pristine` says. Its image and length are those that were laid.
    ///
    /// `still` says that the thread has met no page fault since the memory was put back before, from the beginning of
    /// that. Then no further page can have changed, since the first write to a page of the file is a fault, and the last
    /// scan still holds.
    pub(crate) fn restore(
        &self,
        pristine: &Pristine<'_>,
        reset: Reset,
        scanner: Option<&Scanner>,
        still: bool,
    ) -> io::Result<()> {
        self.shrink(pristine.len)?;
        match (reset, scanner) {
            (Reset::PageScan, Some(scanner)) => {
                if !still || self.lock().unsure {
                    self.scan(pristine.len, scanner)?;
                }
                self.write_back(pristine)
            }
            (Reset::PageScan | Reset::Remap, _) if pristine.image.file().is_some() => {
                self.drop_all(pristine.len)?;
                self.lay_over(pristine)
            }
            _ => {
                self.lay(pristine.image, pristine.len)?;
                self.lay_over(pristine)
            }
        }
    }

    fn scan(&self, len: usize, scanner: &Scanner) -> io::Result<()> {
        let base = self.base.as_ptr() as usize;
        let mut access = self.lock();
        access.changed.clear();
        access.unsure = false;
        scanner.changed(base..base + len, |run| access.changed.push(run.start - base..run.end - base))
    }

    /// Copies back every page that may differ, and lays the module over it.
    fn write_back(&self, pristine: &Pristine<'_>) -> io::Result<()> {
        let looks = {
            let mut access = self.lock();
            access.restored = access.restored.wrapping_add(1);
            pristine.over.is_some() || access.restored.is_multiple_of(LOOK_EVERY)
        };
        if self.changed_bytes() > RESIDENT_BYTES_MAX + pristine.laid_bytes() {
            self.drop_all(pristine.len)?;
            self.lay_over(pristine)
        } else if looks {
            self.merge(pristine)?;
            self.drop_idle(pristine.len)
        } else {
            self.copy_back(pristine.image)
        }
    }

    /// The short way, for a memory over which nothing is laid.
    fn copy_back(&self, image: &Image) -> io::Result<()> {
        let access = self.lock();
        for run in &access.changed {
            let Some(good) = image.get(run.clone()) else { return Err(io::ErrorKind::InvalidData.into()) };
            // SAFETY: as long as the image, this memory is accessible, and no guest runs on it.
            unsafe { ptr::copy_nonoverlapping(good.as_ptr(), self.base.as_ptr().add(run.start), good.len()) };
        }
        Ok(())
    }

    /// Goes through the pages that changed and those that the module changes, and counts who is idle.
    fn merge(&self, pristine: &Pristine<'_>) -> io::Result<()> {
        let mut access = self.lock();
        let Access { changed, idle, open_bytes, .. } = &mut *access;
        idle.resize(pristine.len / PAGE_BYTES, 0);
        let mut laid = pristine.laid().peekable();
        for start in changed.iter().flat_map(|run| run.clone().step_by(PAGE_BYTES)) {
            while let Some(page) = laid.next_if(|page| page.start < start) {
                self.lay_page(&page, pristine.image, *open_bytes)?;
            }
            let Some(idle) = idle.get_mut(start / PAGE_BYTES) else { return Err(io::ErrorKind::InvalidData.into()) };
            if let Some(page) = laid.next_if(|page| page.start == start) {
                self.lay_page(&page, pristine.image, *open_bytes)?;
                *idle = 0;
                continue;
            }
            let (page, good) = (self.page(start, *open_bytes)?, pristine.image.page(start));
            if *page == *good {
                *idle = idle.saturating_add(1);
            } else {
                *page = *good;
                *idle = 0;
            }
        }
        laid.try_for_each(|page| self.lay_page(&page, pristine.image, *open_bytes))
    }

    /// Lays the module over a memory that is the image.
    fn lay_over(&self, pristine: &Pristine<'_>) -> io::Result<()> {
        let access = self.lock();
        pristine.laid().try_for_each(|page| self.lay_page(&page, pristine.image, access.open_bytes))
    }

    fn lay_page(&self, page: &module::Page<'_>, image: &Image, open_bytes: usize) -> io::Result<()> {
        let place = self.page(page.start, open_bytes)?;
        *place = *image.page(page.start);
        page.lay_over(place);
        Ok(())
    }

    /// The page at `start`, to be written by the one who holds the lock.
    #[expect(clippy::mut_from_ref, reason = "the memory is not part of the value; who may touch it is said there")]
    fn page(&self, start: usize, open_bytes: usize) -> io::Result<&mut [u8; PAGE_BYTES]> {
        if !start.is_multiple_of(PAGE_BYTES) || start + PAGE_BYTES > open_bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: accessible as it lies below `open_bytes`; no guest runs, and the callers above use one page at a time.
        Ok(unsafe { &mut *self.base.as_ptr().add(start).cast() })
    }

    /// Gives back the pages that nobody has written to for a while.
    fn drop_idle(&self, len: usize) -> io::Result<()> {
        let mut access = self.lock();
        let count = access.idle.iter().filter(|idle| **idle >= IDLE_MAX).count();
        // A machine with larger pages would give back their neighbours with them.
        if count < IDLE_PAGES_MIN || rustix::param::page_size() != PAGE_BYTES {
            return Ok(());
        }
        access.unsure = true;
        let mut pages = 0..len / PAGE_BYTES;
        while let Some(first) = pages.find(|page| access.idle.get(*page).is_some_and(|idle| *idle >= IDLE_MAX)) {
            let run = iter::successors(Some(first), |page| Some(page + 1));
            let run = run.take_while(|page| access.idle.get(*page).is_some_and(|idle| *idle >= IDLE_MAX)).count();
            self.give_back(first * PAGE_BYTES, run * PAGE_BYTES)?;
            access.idle.iter_mut().skip(first).take(run).for_each(|idle| *idle = 0);
            pages.start = first + run;
        }
        Ok(())
    }

    /// Gives back all pages of its own; what is mapped comes in their place.
    fn drop_all(&self, len: usize) -> io::Result<()> {
        let mut access = self.lock();
        access.changed.clear();
        access.idle.clear();
        // Until it is scanned, it cannot be told what is written from here on.
        access.unsure = true;
        self.give_back(0, len)
    }

    fn give_back(&self, start: usize, len: usize) -> io::Result<()> {
        let place = self.at(start)?;
        // SAFETY: our own address space; private pages of a file come back as the file has them.
        unsafe { rustix::mm::madvise(place.cast(), len, Advice::LinuxDontNeed) }?;
        Ok(())
    }
}
