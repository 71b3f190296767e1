//! Asks the kernel which pages of a mapping differ from the mapped file (PAGEMAP_SCAN, Linux 6.7 and later).
#![allow(unsafe_code, reason = "two system calls that no library wraps")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags};

/// Scans the memory of this process.
pub(crate) struct Scanner {
    pagemap: File,
    counts_faults: bool,
}

impl Scanner {
    /// Opens `/proc/self/pagemap`.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self { pagemap: File::open("/proc/self/pagemap")?, counts_faults: counts_faults()? })
    }

    /// The page faults of the calling thread; `None` if the system does not count them.
    ///
    /// Much cheaper than a scan, and without a new fault a scan would find nothing new.
    pub(crate) fn faults(&self) -> Option<u64> {
        self.counts_faults.then(faults).flatten()
    }

    /// Calls `found` with each run of changed pages in `range`, which must be page-aligned.
    ///
    /// Changed means present or swapped out, but neither a page of the file nor the zero page. This does not use the
    /// category "written", which needs write protection through userfaultfd; without it, Linux 6.18 also reports pages
    /// that were never touched.
    pub(crate) fn changed(&self, range: Range<usize>, mut found: impl FnMut(Range<usize>)) -> io::Result<()> {
        let mut regions = [Region::default(); REGIONS];
        let mut start = range.start;
        while start < range.end {
            let mut argument = ScanArgument::new(start..range.end, &mut regions);
            // SAFETY: `ScanArgument` describes PAGEMAP_SCAN and its buffer lives until the call is over.
            let count = unsafe { ioctl(&self.pagemap, &mut argument) }?;
            start = argument.walk_end as usize;
            for region in regions.iter().take(count) {
                found(region.start as usize..region.end as usize);
            }
        }
        Ok(())
    }
}

/// Checks that touching a fresh page counts as a fault.
fn counts_faults() -> io::Result<bool> {
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

/// Runs of pages per system call: more than an ordinary message changes.
const REGIONS: usize = 96;

const PAGE_IS_FILE: u64 = 1 << 2;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
const PAGE_IS_PFNZERO: u64 = 1 << 5;

/// The kernel's `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// The kernel's `struct pm_scan_arg`.
#[repr(C)]
struct ScanArgument {
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

impl ScanArgument {
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
unsafe impl Ioctl for &mut ScanArgument {
    type Output = usize;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<ScanArgument>(b'f', 16)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut **self).cast()
    }

    unsafe fn output_from_ptr(found: IoctlOutput, _: *mut c_void) -> rustix::io::Result<usize> {
        usize::try_from(found).map_err(|_| rustix::io::Errno::OVERFLOW)
    }
}
