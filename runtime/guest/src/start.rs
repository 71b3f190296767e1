//! Builds the guest: its runtime and realms, with what scripts find in them.

use crate::environment;
use crate::guest::{self, Guest};
use crate::js::{GARBAGE_BYTES, Runtime};

/// The guest. Built for the first call, which happens at build time.
pub(crate) fn guest() -> &'static Guest {
    guest::get_or_build(new)
}

/// A failure here fails the build of the guest, never a message.
fn new() -> Guest {
    let Some(guest) = build() else { std::process::abort() };
    guest
}

fn build() -> Option<Guest> {
    let runtime = Runtime::new(guest::interrupt)?;
    let realms = [runtime.new_realm()?, runtime.new_realm()?, runtime.new_realm()?, runtime.new_realm()?];
    for realm in realms {
        environment::prepare(realm).ok()?;
    }
    runtime.collect(GARBAGE_BYTES);
    let guest = Guest::new(runtime, realms)?;
    for realm in realms {
        guest.names.make_shapes(realm);
    }
    Some(guest)
}
