//! Restores a memory after a message.

use std::io;
use std::iter;
use std::ptr;

use rustix::mm::Advice;

use super::{Access, Mapping};
use crate::load::module::{self, Module, PAGE_BYTES};
use crate::memory::image::Image;
use crate::memory::page_scan::Scanner;
use crate::memory::reset::Reset;

/// Private pages that stay resident between messages, not counting those of the module. Above it, all are dropped.
const RESIDENT_BYTES_MAX: usize = 1 << 20;
/// A page is dropped after this many restores without a change. Comparing a page is far cheaper than faulting it in
/// again, and with many function sets some set soon needs it.
const IDLE_MAX: u8 = 64;
/// Idle pages are dropped at least this many at a time.
const IDLE_PAGES_MIN: usize = 8;
/// With one function set, pages are compared once in this many messages, and otherwise only copied: that is faster than
/// finding where they differ.
const COMPARE_EVERY: u32 = 32;
/// Restores that such a comparison counts for, so that an idle page is dropped after 512 messages.
const COMPARE_COUNTS: u8 = 4;

/// The contents of a memory before a message.
#[derive(Clone, Copy)]
pub(crate) struct Baseline<'a> {
    pub(crate) image: &'a Image,
    /// The length of the memory; zeros follow the image.
    pub(crate) len: usize,
    /// The changes to apply to the image.
    pub(crate) module: Option<&'a Module>,
}

impl<'a> Baseline<'a> {
    fn module_pages(&self) -> impl Iterator<Item = module::Page<'a>> + use<'a> {
        self.module.into_iter().flat_map(Module::pages)
    }

    fn module_bytes(&self) -> usize {
        self.module.map_or(0, Module::changed_bytes)
    }
}

impl Mapping {
    /// Restores the memory to `baseline`, whose image and length are those that were mapped.
    ///
    /// `no_faults` says that the thread has met no page fault since the start of the previous restore, or that the memory
    /// was protected. Then the last scan is still valid: the first write to a page of the file is a fault, and one to a
    /// protected page a trap, so no further page can have changed.
    pub(crate) fn restore(
        &self,
        baseline: &Baseline<'_>,
        reset: Reset,
        scanner: Option<&Scanner>,
        no_faults: bool,
    ) -> io::Result<()> {
        let mut access = self.lock();
        self.shrink(&mut access, baseline.len)?;
        match (reset, scanner) {
            (Reset::PageScan, Some(scanner)) => {
                if !no_faults || access.is_scan_stale {
                    if access.is_protected {
                        self.make_writable(&mut access)?;
                    }
                    self.scan(&mut access, baseline.len, scanner)?;
                }
                self.write_back(&mut access, baseline)
            }
            (Reset::PageScan | Reset::Remap, _) if baseline.image.file().is_some() => {
                self.drop_all(&mut access, baseline.len)?;
                self.apply_module(&access, baseline)
            }
            _ => {
                drop(access);
                self.map_image(baseline.image, baseline.len)?;
                self.apply_module(&self.lock(), baseline)
            }
        }
    }

    fn scan(&self, access: &mut Access, len: usize, scanner: &Scanner) -> io::Result<()> {
        let base = self.base.as_ptr() as usize;
        access.changed.clear();
        access.is_scan_stale = false;
        scanner.changed(base..base + len, |run| access.changed.push(run.start - base..run.end - base))
    }

    /// Copies back every page that may differ and applies the module.
    fn write_back(&self, access: &mut Access, baseline: &Baseline<'_>) -> io::Result<()> {
        access.restore_count = access.restore_count.wrapping_add(1);
        if access.changed_bytes() > RESIDENT_BYTES_MAX + baseline.module_bytes() {
            self.drop_all(access, baseline.len)?;
            self.apply_module(access, baseline)
        } else if baseline.module.is_some() || access.restore_count.is_multiple_of(COMPARE_EVERY) {
            self.merge(access, baseline)?;
            self.drop_idle(access, baseline.len)
        } else {
            self.copy_back(access, baseline.image)
        }
    }

    /// The fast path, without a module.
    fn copy_back(&self, access: &Access, image: &Image) -> io::Result<()> {
        for run in &access.changed {
            let Some(original) = image.get(run.clone()) else { return Err(io::ErrorKind::InvalidData.into()) };
            // SAFETY: as long as the image, this memory is accessible, and no guest runs on it.
            unsafe { ptr::copy_nonoverlapping(original.as_ptr(), self.base.as_ptr().add(run.start), original.len()) };
        }
        Ok(())
    }

    /// Restores the changed pages and those of the module, and counts idle pages.
    fn merge(&self, access: &mut Access, baseline: &Baseline<'_>) -> io::Result<()> {
        let Access { changed, idle, open_bytes, .. } = access;
        idle.resize(baseline.len / PAGE_BYTES, 0);
        let step = if baseline.module.is_some() { 1 } else { COMPARE_COUNTS };
        let mut module_pages = baseline.module_pages().peekable();
        for start in changed.iter().flat_map(|run| run.clone().step_by(PAGE_BYTES)) {
            while let Some(page) = module_pages.next_if(|page| page.start < start) {
                self.restore_page(&page, baseline.image, *open_bytes)?;
            }
            let Some(idle) = idle.get_mut(start / PAGE_BYTES) else { return Err(io::ErrorKind::InvalidData.into()) };
            if let Some(page) = module_pages.next_if(|page| page.start == start) {
                self.restore_page(&page, baseline.image, *open_bytes)?;
                *idle = 0;
                continue;
            }
            let (page, original) = (self.page(start, *open_bytes)?, baseline.image.page(start));
            if *page == *original {
                *idle = idle.saturating_add(step);
            } else {
                *page = *original;
                *idle = 0;
            }
        }
        module_pages.try_for_each(|page| self.restore_page(&page, baseline.image, *open_bytes))
    }

    /// Applies the module to a memory that equals the image.
    fn apply_module(&self, access: &Access, baseline: &Baseline<'_>) -> io::Result<()> {
        baseline.module_pages().try_for_each(|page| self.restore_page(&page, baseline.image, access.open_bytes))
    }

    fn restore_page(&self, page: &module::Page<'_>, image: &Image, open_bytes: usize) -> io::Result<()> {
        let bytes = self.page(page.start, open_bytes)?;
        *bytes = *image.page(page.start);
        page.apply_to(bytes);
        Ok(())
    }

    /// The page at `start`. The caller must hold the lock.
    #[expect(clippy::mut_from_ref, reason = "the memory is not part of the value; see `Mapping` for who may touch it")]
    fn page(&self, start: usize, open_bytes: usize) -> io::Result<&mut [u8; PAGE_BYTES]> {
        if !start.is_multiple_of(PAGE_BYTES) || start + PAGE_BYTES > open_bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: accessible as it lies below `open_bytes`; no guest runs, and the callers above use one page at a
        // time.
        Ok(unsafe { &mut *self.base.as_ptr().add(start).cast() })
    }

    /// Drops the pages that have not changed for a while.
    fn drop_idle(&self, access: &mut Access, len: usize) -> io::Result<()> {
        let count = access.idle.iter().filter(|idle| **idle >= IDLE_MAX).count();
        // With larger system pages, this would drop neighbouring pages too.
        if count < IDLE_PAGES_MIN || rustix::param::page_size() != PAGE_BYTES {
            return Ok(());
        }
        access.is_scan_stale = true;
        let mut pages = 0..len / PAGE_BYTES;
        while let Some(first) = pages.find(|page| access.idle.get(*page).is_some_and(|idle| *idle >= IDLE_MAX)) {
            let run = iter::successors(Some(first), |page| Some(page + 1));
            let run = run.take_while(|page| access.idle.get(*page).is_some_and(|idle| *idle >= IDLE_MAX)).count();
            self.drop_pages(first * PAGE_BYTES, run * PAGE_BYTES)?;
            access.idle.iter_mut().skip(first).take(run).for_each(|idle| *idle = 0);
            pages.start = first + run;
        }
        Ok(())
    }

    /// Drops all private pages, which brings back the mapped file.
    fn drop_all(&self, access: &mut Access, len: usize) -> io::Result<()> {
        access.changed.clear();
        access.idle.clear();
        // From here on, only a new scan can tell what has changed.
        access.is_scan_stale = true;
        self.drop_pages(0, len)
    }

    fn drop_pages(&self, start: usize, len: usize) -> io::Result<()> {
        let address = self.address(start)?;
        // SAFETY: our own address space; dropped private pages of a file read as the file again.
        unsafe { rustix::mm::madvise(address.cast(), len, Advice::LinuxDontNeed) }?;
        Ok(())
    }
}
