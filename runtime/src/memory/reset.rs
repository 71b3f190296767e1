//! The ways to put a memory back after a message, and which of them this system can do.

use std::io;

use crate::load::guest::WASM_PAGE_BYTES;
use crate::load::module::Module;
use crate::memory::image::Image;
use crate::memory::mapping::{Mapping, Pristine};
use crate::memory::page_scan::Scanner;

/// How a memory is put back after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// The kernel names the changed pages and they are copied back: 1 to 5 µs (Linux 6.7 and later).
    PageScan,
    /// All changed pages are dropped, and fault in again: tens of µs.
    Remap,
    /// The whole image is copied: hundreds of µs, where there are no files in memory.
    Copy,
}

impl Reset {
    /// The fastest one that this system can do.
    pub(crate) fn probe() -> Self {
        [Self::PageScan, Self::Remap].into_iter().find(|reset| reset.works().unwrap_or(false)).unwrap_or(Self::Copy)
    }

    /// The word for it in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageScan => "page scan",
            Self::Remap => "remap",
            Self::Copy => "copy",
        }
    }

    /// Puts a memory where memories of this kind are mapped from: `first`, and what `module` changes of it.
    pub(crate) fn image(self, first: &[u8], module: Option<&Module>) -> io::Result<Image> {
        match self {
            Self::PageScan | Self::Remap => Image::in_file(first, module),
            Self::Copy => Ok(Image::on_heap(first, module)),
        }
    }

    /// What finds the changed pages, where that is asked for.
    pub(crate) fn scanner(self) -> io::Result<Option<Scanner>> {
        (self == Self::PageScan).then(Scanner::open).transpose()
    }

    /// Tries it on a small memory; also false where it would work but name pages that nobody changed.
    fn works(self) -> io::Result<bool> {
        const CHANGED: usize = WASM_PAGE_BYTES;
        let memory: Vec<u8> = (0..2 * WASM_PAGE_BYTES).map(|index| (index / 7) as u8).collect();
        let image = self.image(&memory, None)?;
        let pristine = Pristine { image: &image, len: image.len(), over: None };
        let scanner = self.scanner()?;
        let mapping = Mapping::reserve()?;
        mapping.lay(&image, image.len())?;
        mapping.write(CHANGED, !image[CHANGED])?;
        mapping.restore(&pristine, self, scanner.as_ref(), false)?;
        Ok(mapping.changed_bytes() < WASM_PAGE_BYTES && mapping.snapshot() == *image)
    }
}
