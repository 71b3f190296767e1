//! The allocator. Replaces wasi-libc's `malloc` family at link time.
//!
//! The allocations of one message should lie together, because the host copies back every page that they dirty. So a new
//! block comes from the end of the heap, unless a block of the same size class is free; and [`seal`] drops all free blocks
//! once the sources are loaded, so that every message starts on a fresh page. Free blocks are never merged; the host's
//! limit on linear memory limits the waste.
//!
//! The eight bytes before a block are the header that QuickJS expects of its own allocator: two are ours, for the class
//! of the block, and QuickJS counts references in the others.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;

const PAGE_BYTES: usize = 4096;
const WASM_PAGE_BYTES: usize = 65_536;
/// Free memory for messages. A message that grows the memory costs the host a new instance, so most should not have to.
const HEAD_ROOM_BYTES: usize = 512 * 1024;
/// Loaded sources leave a memory whose length is a multiple of this. The fewer lengths there are, the more function sets
/// can share an instance.
const LENGTH_STEP_BYTES: usize = 1 << 20;
/// Blocks up to this size have classes 8 bytes apart, larger ones four classes to each power of two.
const FINE_BYTES_MAX: usize = 1024;
const FINE_CLASSES: usize = FINE_BYTES_MAX / 8 + 1;
const CLASSES: usize = FINE_CLASSES + 4 * 20;
pub(crate) const HEADER_BYTES: usize = 8;
/// The largest request: far above what the host's memory limit allows.
const REQUEST_BYTES_MAX: usize = 1 << 28;

struct Heap {
    /// Where the next fresh block's header goes; always a multiple of 8.
    next: usize,
    end: usize,
    /// Where the first block after the last [`seal`] lies. Earlier blocks are never reused: that would dirty pages all
    /// over the image, and QuickJS treats what lies there as immortal.
    sealed: usize,
    /// For each class, a linked list of free blocks; the first word of a block points to the next.
    free: [usize; CLASSES],
}

struct Single(UnsafeCell<Heap>);

// SAFETY: the guest has no threads.
unsafe impl Sync for Single {}

static HEAP: Single = Single(UnsafeCell::new(Heap { next: 0, end: 0, sealed: 0, free: [0; CLASSES] }));

unsafe extern "C" {
    /// Placed by the linker where static data ends.
    static __heap_base: u8;
}

/// The class of a block of at least `bytes`, and the size such blocks have, header included.
fn class_of(bytes: usize) -> (usize, usize) {
    // At least a word, for the link of a free block.
    let total = (bytes.max(1) + HEADER_BYTES + 7) & !7;
    if total <= FINE_BYTES_MAX {
        return (total / 8, total);
    }
    let power = (total - 1).ilog2() as usize;
    let step = 1 << (power - 2);
    let quarter = (total - 1 - (1 << power)) / step;
    (FINE_CLASSES + (power - 10) * 4 + quarter, (1 << power) + (quarter + 1) * step)
}

/// The size of blocks of `class`, header included.
fn class_bytes(class: usize) -> usize {
    if class < FINE_CLASSES {
        return class * 8;
    }
    let (power, quarter) = ((class - FINE_CLASSES) / 4 + 10, (class - FINE_CLASSES) % 4);
    (1 << power) + (quarter + 1) * (1 << (power - 2))
}

impl Heap {
    fn allocate(&mut self, bytes: usize) -> *mut u8 {
        if bytes > REQUEST_BYTES_MAX {
            return ptr::null_mut();
        }
        let (class, total) = class_of(bytes);
        let free = self.free[class];
        if free != 0 {
            // SAFETY: a block on a free list is ours, and its first word is the link that `release` wrote.
            self.free[class] = unsafe { *(free as *const usize) };
            return free as *mut u8;
        }
        self.fresh(class, total)
    }

    fn fresh(&mut self, class: usize, total: usize) -> *mut u8 {
        if self.next == 0 {
            self.next = (&raw const __heap_base as usize).next_multiple_of(8);
            self.end = core::arch::wasm32::memory_size(0) * WASM_PAGE_BYTES;
        }
        let start = self.next;
        if start + total > self.end && !self.grow(start + total) {
            return ptr::null_mut();
        }
        self.next = start + total;
        // SAFETY: the header lies below `end`, in memory that no other block covers.
        unsafe { *(start as *mut u16) = class as u16 };
        (start + HEADER_BYTES) as *mut u8
    }

    fn grow(&mut self, needed: usize) -> bool {
        let pages = (needed - self.end).div_ceil(WASM_PAGE_BYTES);
        if core::arch::wasm32::memory_grow(0, pages) == usize::MAX {
            return false;
        }
        self.end += pages * WASM_PAGE_BYTES;
        true
    }

    fn release(&mut self, block: *mut u8) {
        if (block as usize) < self.sealed {
            return;
        }
        let class = class(block);
        // SAFETY: the block is no longer anybody's, and the smallest class has room for a link.
        unsafe { *(block as *mut usize) = self.free[class] };
        self.free[class] = block as usize;
    }

    /// Makes the block at the end of the heap larger where it lies.
    fn extend(&mut self, block: *mut u8, bytes: usize) -> bool {
        let start = block as usize - HEADER_BYTES;
        if start + class_bytes(class(block)) != self.next || bytes > REQUEST_BYTES_MAX {
            return false;
        }
        let (class, total) = class_of(bytes);
        if start + total > self.end && !self.grow(start + total) {
            return false;
        }
        self.next = start + total;
        // SAFETY: the header of a block that `allocate` gave.
        unsafe { *(start as *mut u16) = class as u16 };
        true
    }

    fn seal(&mut self) {
        for class in 0..CLASSES {
            let mut block = std::mem::take(&mut self.free[class]);
            while block != 0 {
                // SAFETY: a block on a free list is ours, from its link to the end of its class.
                block = unsafe {
                    let next = *(block as *const usize);
                    ptr::write_bytes(block as *mut u8, 0, class_bytes(class) - HEADER_BYTES);
                    next
                };
            }
        }
        self.sealed = self.next.next_multiple_of(PAGE_BYTES);
        self.next = self.sealed;
        // If the host refuses, messages have less head room.
        if self.next + HEAD_ROOM_BYTES > self.end {
            self.grow(self.next + HEAD_ROOM_BYTES);
        }
    }

    /// Aligns the heap so that messages of all function sets start at a fixed distance from the end of a memory of one of
    /// few lengths. Function sets that share a memory then write to the same pages.
    fn align(&mut self) {
        let end = self.end.next_multiple_of(LENGTH_STEP_BYTES);
        // If the host refuses, the memory has an unusual length, which only costs time.
        if end == self.end || self.grow(end) {
            // Never backwards: loaded data may already reach into the head room.
            self.next = self.next.max(end - HEAD_ROOM_BYTES);
        }
    }
}

fn class(block: *mut u8) -> usize {
    // SAFETY: every block handed out has its class at the start of its header.
    unsafe { *(block.sub(HEADER_BYTES) as *const u16) as usize }
}

fn heap() -> &'static mut Heap {
    // SAFETY: one thread, and no function in this file calls foreign code while it holds the heap.
    unsafe { &mut *HEAP.0.get() }
}

/// Drops and clears all free blocks, so that the next allocation starts on a fresh page; returns its address.
pub(crate) fn seal() -> usize {
    heap().seal();
    heap().sealed
}

/// Grows the memory to a common length and aligns where messages start; see `Heap::align`.
pub(crate) fn align() {
    heap().align();
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn malloc(bytes: usize) -> *mut c_void {
    heap().allocate(bytes).cast()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        heap().release(block.cast());
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(bytes) else { return ptr::null_mut() };
    let block = heap().allocate(bytes);
    if !block.is_null() {
        // SAFETY: the block has room for at least `bytes`.
        unsafe { ptr::write_bytes(block, 0, bytes) };
    }
    block.cast()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    if block.is_null() {
        return heap().allocate(bytes).cast();
    }
    let room = usable_bytes(block.cast());
    if bytes <= room || heap().extend(block.cast(), bytes) {
        return block;
    }
    let moved = heap().allocate(bytes);
    if !moved.is_null() {
        // SAFETY: both blocks are ours and distinct, and the new one is the larger. What lies between class and block is
        // QuickJS's.
        unsafe {
            let kept = HEADER_BYTES - size_of::<u16>();
            ptr::copy_nonoverlapping(block.cast::<u8>().sub(kept), moved.sub(kept), kept + room);
        }
        heap().release(block.cast());
    }
    moved.cast()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() { 0 } else { usable_bytes(block.cast()) }
}

/// Every block is 8-byte aligned; nothing needs more.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, alignment: usize, bytes: usize) -> i32 {
    const EINVAL: i32 = 28;
    const ENOMEM: i32 = 48;
    if alignment > 8 {
        return EINVAL;
    }
    let block = malloc(bytes);
    // SAFETY: the caller passes a valid pointer.
    unsafe { *out = block };
    if block.is_null() { ENOMEM } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    if alignment > 8 { ptr::null_mut() } else { malloc(bytes) }
}

fn usable_bytes(block: *mut u8) -> usize {
    class_bytes(class(block)) - HEADER_BYTES
}
