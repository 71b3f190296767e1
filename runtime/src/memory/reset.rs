//! The ways to restore a memory after a message, and a probe for which of them the system supports.

use std::io;

use crate::load::guest::WASM_PAGE_BYTES;
use crate::load::module::Module;
use crate::memory::image::Image;
use crate::memory::mapping::{Baseline, Mapping};
use crate::memory::page_scan::Scanner;

/// Ways to restore a memory after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// The kernel reports the changed pages, which are copied back: 1 to 5 µs (Linux 6.7 and later).
    PageScan,
    /// All changed pages are dropped and fault in again: tens of µs.
    Remap,
    /// The whole image is copied: hundreds of µs, for systems without `memfd`.
    Copy,
}

impl Reset {
    /// The fastest way that the system supports.
    pub(crate) fn probe() -> Self {
        [Self::PageScan, Self::Remap].into_iter().find(|reset| reset.works().unwrap_or(false)).unwrap_or(Self::Copy)
    }

    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageScan => "page scan",
            Self::Remap => "remap",
            Self::Copy => "copy",
        }
    }

    /// Creates the kind of image that this way needs: `initial` with `module` applied.
    pub(crate) fn image(self, initial: &[u8], module: Option<&Module>) -> io::Result<Image> {
        match self {
            Self::PageScan | Self::Remap => Image::in_file(initial, module),
            Self::Copy => Ok(Image::on_heap(initial, module)),
        }
    }

    /// The page scanner, if this way needs one.
    pub(crate) fn scanner(self) -> io::Result<Option<Scanner>> {
        (self == Self::PageScan).then(Scanner::open).transpose()
    }

    /// Tries it on a small memory. Also false if the kernel reports pages that did not change.
    fn works(self) -> io::Result<bool> {
        const CHANGED: usize = WASM_PAGE_BYTES;
        let memory: Vec<u8> = (0..2 * WASM_PAGE_BYTES).map(|index| (index / 7) as u8).collect();
        let image = self.image(&memory, None)?;
        let baseline = Baseline { image: &image, len: image.len(), module: None };
        let scanner = self.scanner()?;
        let mapping = Mapping::reserve()?;
        mapping.map_image(&image, image.len())?;
        mapping.write(CHANGED, !image[CHANGED])?;
        mapping.restore(&baseline, self, scanner.as_ref(), false)?;
        Ok(mapping.changed_bytes() < WASM_PAGE_BYTES && mapping.snapshot() == *image)
    }
}
