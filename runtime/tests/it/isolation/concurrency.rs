//! The same with many threads on one engine: some meet every limit while others look for what they brought.

use std::thread;

use airlock_runtime::Slot;

use super::tenant::{ENDINGS, SECRET, Tenant};
use crate::rig::{Rig, ways};

/// Threads that hide, and as many that look.
const PAIRS: usize = 3;
const ROUNDS: usize = 2;

#[test]
fn nothing_gets_from_one_thread_to_another() {
    for way in ways() {
        let rig = Rig::with_way(way);
        let tenants: Vec<Tenant> =
            ENDINGS.iter().flat_map(|ending| Slot::ALL.map(|slot| Tenant::load(&rig, "one", slot, ending))).collect();
        thread::scope(|scope| {
            for number in 0..PAIRS {
                let (rig, tenants) = (&rig, &tenants);
                scope.spawn(move || hide(rig, tenants, number));
                scope.spawn(move || look(rig, tenants, number));
            }
        });
    }
}

/// Hides a secret of the thread's own, and sees that nobody else's comes up in between.
fn hide(rig: &Rig, tenants: &[Tenant], number: usize) {
    let mut sandbox = rig.engine.sandbox();
    let secret = [SECRET, &[b'a' + number as u8]].concat();
    for tenant in turns(tenants, number) {
        tenant.hide(&mut sandbox, &secret, &format!("thread {number}"));
        tenant.look(&mut sandbox, SECRET, &format!("thread {number} after {}", tenant.ending.name));
    }
}

/// Looks for anybody's secret with the same functions, and with functions that are loaded meanwhile.
fn look(rig: &Rig, tenants: &[Tenant], number: usize) {
    let mut sandbox = rig.engine.sandbox();
    for tenant in turns(tenants, number) {
        let fresh = Tenant::load(rig, &format!("fresh in thread {number}"), tenant.slot, &ENDINGS[0]);
        fresh.look(&mut sandbox, SECRET, "functions that were loaded meanwhile");
        tenant.look(&mut sandbox, SECRET, &format!("beside {}", tenant.ending.name));
    }
}

/// All of them some times over, each thread in an order of its own.
fn turns(tenants: &[Tenant], number: usize) -> impl Iterator<Item = &Tenant> {
    tenants.iter().cycle().skip(number * 7).take(ROUNDS * tenants.len())
}
