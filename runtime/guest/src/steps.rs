//! Writes the list of steps, with which the host tells what each step of a script cost.

use crate::guest::Guest;
use crate::js::{Atom, StepList};
use crate::wire::Writer;

/// Writes the steps of the functions of all sources.
pub(crate) fn list(guest: &Guest, _: &[u8], reply: &mut Writer) {
    let list = guest.realms[0].list_steps(List { guest, reply, is_of_source: false });
    list.reply.byte(END);
}

/// Kinds of list entries.
const END: u8 = 0;
const FUNCTION: u8 = 1;
const STEP: u8 = 2;
const BRANCH: u8 = 3;

struct List<'a> {
    guest: &'a Guest,
    reply: &'a mut Writer,
    /// True if the current function is of a source, rather than built in.
    is_of_source: bool,
}

impl StepList for List<'_> {
    fn function(&mut self, file: Atom, name: Atom, address: u32) {
        let slot = self.guest.names.files.iter().position(|of_slot| *of_slot == file);
        self.is_of_source = slot.is_some();
        if let Some(slot) = slot {
            let name = name.text(self.guest.realms[0]).ok();
            self.reply.byte(FUNCTION).byte(slot as u8).number(address).text(name.as_deref().unwrap_or_default());
        }
    }

    fn step(&mut self, offset: u32, line: u32, column: u32, is_branch: bool) {
        if self.is_of_source {
            self.reply.byte(if is_branch { BRANCH } else { STEP }).number(offset).number(line).number(column);
        }
    }
}
