//! The same with many threads on one engine: some hide secrets and hit every limit while others look for the secrets.

use std::thread;

use airlock_runtime::Slot;

use super::tenant::{ENDINGS, SECRET, Tenant};
use crate::harness::{Harness, ways};

/// The number of hiding threads, and of looking threads.
const PAIRS: usize = 3;
const ROUNDS: usize = 2;

#[test]
fn nothing_leaks_from_one_thread_to_another() {
    for way in ways() {
        let harness = Harness::with_way(way);
        let tenants: Vec<Tenant> = ENDINGS
            .iter()
            .flat_map(|ending| Slot::ALL.map(|slot| Tenant::load(&harness, "one", slot, ending)))
            .collect();
        thread::scope(|scope| {
            for number in 0..PAIRS {
                let (harness, tenants) = (&harness, &tenants);
                scope.spawn(move || hide(harness, tenants, number));
                scope.spawn(move || look(harness, tenants, number));
            }
        });
    }
}

/// Hides this thread's secret, and checks that no other thread's secret appears.
fn hide(harness: &Harness, tenants: &[Tenant], number: usize) {
    let mut sandbox = harness.engine.sandbox();
    let secret = [SECRET, &[b'a' + number as u8]].concat();
    for tenant in turns(tenants, number) {
        tenant.hide(&mut sandbox, &secret, &format!("thread {number}"));
        tenant.look(&mut sandbox, SECRET, &format!("thread {number} after {}", tenant.ending.name));
    }
}

/// Looks for any thread's secret with the same functions, and with functions loaded meanwhile.
fn look(harness: &Harness, tenants: &[Tenant], number: usize) {
    let mut sandbox = harness.engine.sandbox();
    for tenant in turns(tenants, number) {
        let fresh = Tenant::load(harness, &format!("fresh in thread {number}"), tenant.slot, &ENDINGS[0]);
        fresh.look(&mut sandbox, SECRET, "functions that were loaded meanwhile");
        tenant.look(&mut sandbox, SECRET, &format!("beside {}", tenant.ending.name));
    }
}

/// All endings several times, in a different order for each thread.
fn turns(tenants: &[Tenant], number: usize) -> impl Iterator<Item = &Tenant> {
    tenants.iter().cycle().skip(number * 7).take(ROUNDS * tenants.len())
}
