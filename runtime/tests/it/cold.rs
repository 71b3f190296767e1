//! Functions that share a memory with others: the same answers, the same fuel, and nothing of the others.

use std::thread;

use airlock_runtime::{FailureKind, Functions, Reset, Settings, Slot};

use crate::rig::{Rig, fields, settings};

/// Functions whose sizes differ, so that they lay out different pages.
fn many(rig: &Rig, count: usize) -> Vec<Functions> {
    (0..count)
        .map(|number| {
            let table = format!("var table = 'x'.repeat({}).split('').map(Math.sqrt);", 50 + number % 7 * 900);
            let text = format!("{table} var n = {number}; function Decoder(b) {{ n += b[0]; return {{ n: n }}; }}");
            rig.load_in(Slot::Decoder, &text)
        })
        .collect()
}

fn rig(reset: Reset, hot_max: usize, hot_after: u32) -> Rig {
    Rig::with_way((reset, Settings { hot_max, hot_after, ..settings() }))
}

#[test]
fn functions_that_take_turns_answer_as_if_they_were_alone() {
    for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
        let mut cold = rig(reset, 0, 1);
        let functions = many(&cold, 20);
        let mut hot = rig(reset, 64, 1);
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
fn a_shared_memory_is_what_one_of_their_own_would_be() {
    let mut cold = rig(Reset::PageScan, 0, 1);
    let functions = many(&cold, 8);
    let own: Vec<_> = functions
        .iter()
        .map(|functions| {
            let mut hot = rig(Reset::PageScan, 1, 1);
            hot.decode(functions, b"x");
            hot.sandbox.next_memory(functions).unwrap()
        })
        .collect();
    // Long enough for pages to become idle and go back, and for them to be wanted again.
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
fn functions_become_hot_and_go_cold_with_the_same_answers() {
    let mut rig = rig(Reset::PageScan, 2, 3);
    let functions = many(&rig, 5);
    for round in 0..60_u8 {
        // A pair that is busy, and strangers.
        for number in [0, 1, 0, 1, usize::from(2 + round % 3)] {
            let report = rig.decode(&functions[number], &[round]);
            assert_eq!(fields(&report), format!(r#"{{"n":{}}}"#, number + usize::from(round)));
        }
    }
}

#[test]
fn a_trap_in_a_shared_memory_is_nothing_to_the_next_functions() {
    for reset in [Reset::PageScan, Reset::Remap, Reset::Copy] {
        let mut settings = Settings { hot_max: 0, ..settings() };
        settings.limits.fuel = 20_000_000;
        let mut rig = Rig::with_way((reset, settings));
        let functions = many(&rig, 3);
        let endless = rig.load_in(Slot::Decoder, "function Decoder() { while (true) {} }");
        let deep = rig.load_in(Slot::Decoder, "function Decoder() { return Decoder(); }");
        let grown = rig.load_in(Slot::Decoder, "function Decoder() { new Uint8Array(3000000).fill(1); return {}; }");
        for round in 0..4 {
            for (number, functions) in functions.iter().enumerate() {
                assert_eq!(rig.decode(&endless, b"").result.unwrap_err().kind, FailureKind::Fuel);
                assert_eq!(fields(&rig.decode(functions, &[round])), format!(r#"{{"n":{}}}"#, number + round as usize));
                assert_eq!(rig.decode(&deep, b"").result.unwrap_err().kind, FailureKind::Stack);
                assert_eq!(fields(&rig.decode(&grown, b"")), "{}");
                assert_eq!(fields(&rig.decode(functions, &[round])), format!(r#"{{"n":{}}}"#, number + round as usize));
            }
        }
    }
}

#[test]
fn threads_share_functions_and_no_memory() {
    let rig = rig(Reset::PageScan, 1, 5);
    let functions = many(&rig, 12);
    thread::scope(|scope| {
        for worker in 0..3_usize {
            let (mut sandbox, functions) = (rig.engine.sandbox(), &functions);
            scope.spawn(move || {
                for round in 0..120 {
                    let number = (round * (worker + 1)) % functions.len();
                    let call = crate::rig::call(airlock_runtime::EntryPoint::Uplink, &[round as u8]);
                    let report = sandbox.call(&functions[number], &call);
                    assert_eq!(fields(&report), format!(r#"{{"n":{}}}"#, number + round));
                }
            });
        }
    });
}
