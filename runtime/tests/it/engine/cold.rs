//! Functions in a shared memory: same results, same fuel, no trace of the others.

use std::thread;

use airlock_runtime::{FailureKind, Functions, Reset, Settings, Slot};

use crate::harness::{Harness, fields, settings};

/// Functions of different sizes, so that they change different pages.
fn many(harness: &Harness, count: usize) -> Vec<Functions> {
    (0..count)
        .map(|number| {
            let table = format!("var table = 'x'.repeat({}).split('').map(Math.sqrt);", 50 + number % 7 * 900);
            let text = format!("{table} var n = {number}; function Decoder(b) {{ n += b[0]; return {{ n: n }}; }}");
            harness.load_in(Slot::Decoder, &text)
        })
        .collect()
}

fn harness(reset: Reset, hot_max: usize, hot_after: u32) -> Harness {
    Harness::with_way((reset, Settings { hot_max, hot_after, ..settings() }))
}

#[test]
fn functions_in_a_shared_memory_behave_as_if_alone() {
    for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
        let mut cold = harness(reset, 0, 1);
        let functions = many(&cold, 20);
        let mut hot = harness(reset, 64, 1);
        for round in 0..3_u8 {
            for (number, functions) in functions.iter().enumerate() {
                let (cold, hot) = (cold.decode(functions, &[round]), hot.decode(functions, &[round]));
                assert_eq!(fields(&cold), format!(r#"{{"n":{}}}"#, number + usize::from(round)));
                assert_eq!((fields(&cold), cold.fuel), (fields(&hot), hot.fuel), "{reset:?}");
            }
        }
    }
}

#[test]
fn a_shared_memory_equals_a_dedicated_one() {
    let mut cold = harness(Reset::PageScan, 0, 1);
    let functions = many(&cold, 8);
    let own: Vec<_> = functions
        .iter()
        .map(|functions| {
            let mut hot = harness(Reset::PageScan, 1, 1);
            hot.decode(functions, b"x");
            hot.sandbox.next_memory(functions).unwrap()
        })
        .collect();
    // Long enough for pages to become idle, be dropped, and be needed again.
    for round in 0..200_usize {
        let number = if round < 100 { round % 8 } else { 0 };
        cold.decode(&functions[number], b"x");
        if round % 9 == 0 {
            for (functions, own) in functions.iter().zip(&own) {
                assert!(cold.sandbox.next_memory(functions).unwrap() == *own, "round {round}");
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_being_hot_or_cold() {
    let mut harness = harness(Reset::PageScan, 2, 3);
    let functions = many(&harness, 5);
    for round in 0..60_u8 {
        // Two busy sets among new ones.
        for number in [0, 1, 0, 1, usize::from(2 + round % 3)] {
            let outcome = harness.decode(&functions[number], &[round]);
            assert_eq!(fields(&outcome), format!(r#"{{"n":{}}}"#, number + usize::from(round)));
        }
    }
}

#[test]
fn a_trap_in_a_shared_memory_does_not_affect_the_next_functions() {
    for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
        let mut settings = Settings { hot_max: 0, ..settings() };
        settings.limits.fuel = 20_000_000;
        let mut harness = Harness::with_way((reset, settings));
        let functions = many(&harness, 3);
        let endless = harness.load_in(Slot::Decoder, "function Decoder() { while (true) {} }");
        let deep = harness.load_in(Slot::Decoder, "function Decoder() { return Decoder(); }");
        let grown =
            harness.load_in(Slot::Decoder, "function Decoder() { new Uint8Array(3000000).fill(1); return {}; }");
        for round in 0..4 {
            for (number, functions) in functions.iter().enumerate() {
                assert_eq!(harness.decode(&endless, b"").result.unwrap_err().kind, FailureKind::Fuel);
                assert_eq!(
                    fields(&harness.decode(functions, &[round])),
                    format!(r#"{{"n":{}}}"#, number + round as usize)
                );
                assert_eq!(harness.decode(&deep, b"").result.unwrap_err().kind, FailureKind::Stack);
                assert_eq!(fields(&harness.decode(&grown, b"")), "{}");
                assert_eq!(
                    fields(&harness.decode(functions, &[round])),
                    format!(r#"{{"n":{}}}"#, number + round as usize)
                );
            }
        }
    }
}

#[test]
fn threads_share_functions_and_no_memory() {
    let harness = harness(Reset::PageScan, 1, 5);
    let functions = many(&harness, 12);
    thread::scope(|scope| {
        for worker in 0..3_usize {
            let (mut sandbox, functions) = (harness.engine.sandbox(), &functions);
            scope.spawn(move || {
                for round in 0..120 {
                    let number = (round * (worker + 1)) % functions.len();
                    let call = crate::harness::call(airlock_runtime::EntryPoint::Uplink, &[round as u8]);
                    let outcome = sandbox.call(&functions[number], &call);
                    assert_eq!(fields(&outcome), format!(r#"{{"n":{}}}"#, number + round));
                }
            });
        }
    });
}
