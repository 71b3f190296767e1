//! Asks the kernel which pages of a mapping are no longer those of the file behind it.
#![allow(unsafe_code, reason = "two system calls that no library wraps")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags};

/// Answers for the memory of this process (Linux 6.7 and later).
pub(crate) struct Scanner {
    pagemap: File,
    counts_faults: bool,
}

impl Scanner {
    /// Opens the kernel's view of this process.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { pagemap: File::open("/proc/self/pagemap")?, counts_faults: is_fault_counted()? })
    }

    /// The page faults that the calling thread has met; `None` where the system does not count them.
    ///
    /// Asking takes a fraction of a scan, and without a fault in between a scan has nothing new to say.
    pub(crate) fn faults(&self) -> Option<u64> {
        self.counts_faults.then(faults).flatten()
    }

    /// Calls `found` with each run of changed pages in the addresses of `range`, which begins and ends on a page.
    ///
    /// Changed means: in memory or swapped out, but neither a page of the file nor the page of zeros. Whether it was
    /// *written* is not asked: that category needs write protection through userfaultfd, and without it Linux 6.18
    /// reports pages as written that were never touched.
    pub(crate) fn changed(&self, range: Range<usize>, mut found: impl FnMut(Range<usize>)) -> io::Result<()> {
        let mut regions = [Region::default(); REGIONS];
        let mut start = range.start;
        while start < range.end {
            let mut question = Question::new(start..range.end, &mut regions);
            // SAFETY: `Question` describes PAGEMAP_SCAN and its buffer lives until the call is over.
            let count = unsafe { ioctl(&self.pagemap, &mut question) }?;
            start = question.walk_end as usize;
            for region in regions.iter().take(count) {
                found(region.start as usize..region.end as usize);
            }
        }
        Ok(())
    }
}

/// Touches pages that nobody has touched, which must count.
fn is_fault_counted() -> io::Result<bool> {
    const BYTES: usize = 4 * 65_536;
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let fresh = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), BYTES, access, flags) }?;
    let before = faults();
    // SAFETY: inside the mapping that was just made.
    unsafe { fresh.cast::<u8>().write_volatile(1) };
    let after = faults();
    // SAFETY: the mapping that was just made, which nobody refers to.
    unsafe { rustix::mm::munmap(fresh, BYTES) }?;
    Ok(before.is_some() && after > before)
}

fn faults() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a whole `rusage`, of which all zeros is one too.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    u64::try_from(usage.ru_minflt.checked_add(usage.ru_majflt)?).ok()
}

/// Runs of pages asked for at once: more than a message of an ordinary function leaves.
const REGIONS: usize = 96;

const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;

/// `struct page_region` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of the kernel.
#[repr(C)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

impl Question {
    fn new(range: Range<usize>, regions: &mut [Region]) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            flags: 0,
            start: range.start as u64,
            end: range.end as u64,
            walk_end: 0,
            vec: regions.as_mut_ptr().expose_provenance() as u64,
            vec_len: regions.len() as u64,
            max_pages: 0,
            category_inverted: PAGE_IS_FILE | PAGE_IS_PFNZERO,
            category_mask: PAGE_IS_FILE | PAGE_IS_PFNZERO,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT,
        }
    }
}

// SAFETY: opcode, structure and meaning are those of PAGEMAP_SCAN in the kernel's uapi/linux/fs.h; the kernel writes to
// `walk_end` and to the buffer, hence mutating.
unsafe impl Ioctl for &mut Question {
    type Output = usize;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Question>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut **self).cast()
    }

    unsafe fn output_from_ptr(found: IoctlOutput, _: *mut c_void) -> rustix::io::Result<usize> {
        usize::try_from(found).map_err(|_| rustix::io::Errno::OVERFLOW)
    }
}
