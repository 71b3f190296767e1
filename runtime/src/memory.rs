//! Linear memory: images, the address space they are mapped into, and how it is restored after each message.

pub(crate) mod host_memory;
pub(crate) mod image;
pub(crate) mod mapping;
pub(crate) mod page_scan;
pub(crate) mod reset;
pub(crate) mod watchdog;
