//! Finds bytes of examples that no function looks at.

use std::collections::BTreeMap;

use runtime::Call;
use serde::Serialize;

use super::{deadline::Deadline, random::Random, target::Target};
use crate::{
    codec::kind_name,
    run::fault::{
        Returned,
        caller::json,
        examiner::{Examiner, result},
    },
};

/// Values that a byte gets in each message; in the first, a byte that they do not show to be read gets all 256.
const VALUES: [u8; 8] = [0x00, 0xff, 0x01, 0x80, 0x55, 0xaa, 0x10, 0x7f];
/// Messages of one length in which bytes are changed.
const MESSAGES_MAX: usize = 6;
/// Messages that are made by changing other bytes of examples, for each length.
const VARIATIONS: usize = 4;
/// Calls for all lengths of a codec; bytes that are not looked at within them are not reported.
const CALLS_MAX: u64 = 50_000;

/// Bytes that make no difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The function, by its name in examples.
    pub function: &'static str,
    /// The port.
    pub port: u8,
    /// The number of an example with such a payload.
    pub example: usize,
    /// The length of the payload.
    pub length: usize,
    /// The positions of the bytes, from 0, in order.
    pub positions: Vec<usize>,
    /// Number of changes of one of these bytes, none of which changed the result.
    pub tries: u64,
}

/// The bytes that make no difference in payloads as long as those of the examples of `target`.
pub(super) fn unread(
    examiner: &mut Examiner<'_>,
    target: &Target,
    random: &mut Random,
    deadline: Deadline,
) -> Vec<Unread> {
    let calls_max = examiner.caller.calls + CALLS_MAX;
    let mut lengths: BTreeMap<usize, (usize, Vec<Call>)> = BTreeMap::new();
    for (example, call) in &target.seeds {
        let (_, calls) = lengths.entry(call.payload.len()).or_insert_with(|| (*example, Vec::new()));
        if calls.len() < MESSAGES_MAX && !calls.iter().any(|other| other.payload == call.payload) {
            calls.push(call.clone());
        }
    }
    let mut found = Vec::new();
    for (length, (example, calls)) in lengths {
        let bases = bases(examiner, calls, &target.kept, random);
        let (mut positions, mut tries) = (Vec::new(), 0);
        for position in 0..length {
            let is_spent = examiner.caller.calls > calls_max || deadline.is_past();
            if bases.is_empty() || is_spent {
                break;
            }
            if let Some(changed) = changes(examiner, &bases, position) {
                positions.push(position);
                tries += changed;
            }
        }
        let (function, port) = (kind_name(target.function), target.port);
        if !positions.is_empty() {
            found.push(Unread { function, port, example, length, positions, tries });
        }
    }
    found
}

/// A message that is decoded, and what is decoded.
struct Base {
    call: Call,
    result: String,
}

/// Those of `calls`, of what fuzzing has kept, and of random changes of them, that are decoded: in others, nothing needs
/// to be read.
fn bases(examiner: &mut Examiner<'_>, calls: Vec<Call>, kept: &[Call], random: &mut Random) -> Vec<Base> {
    let Some(first) = calls.first().cloned() else { return Vec::new() };
    let same_length = kept.iter().filter(|call| call.payload.len() == first.payload.len());
    let others = same_length.take(MESSAGES_MAX).cloned().collect::<Vec<_>>();
    let changed = (0..VARIATIONS).map(|_| {
        let mut call = first.clone();
        (0..2).for_each(|_| {
            let at = random.below(call.payload.len());
            call.payload.get_mut(at).into_iter().for_each(|byte| *byte = random.byte());
        });
        call
    });
    let all = calls.into_iter().chain(others).chain(changed.collect::<Vec<_>>());
    all.filter_map(|call| decoded(examiner, call)).collect()
}

fn decoded(examiner: &mut Examiner<'_>, call: Call) -> Option<Base> {
    let (outcome, faults) = examiner.examine(&call);
    let is_refused = |json: &str| Returned::read(json).is_some_and(|returned| returned.has_errors());
    let is_decoded = json(&outcome).is_some_and(|json| json.starts_with('{') && json != "{}" && !is_refused(json));
    (is_decoded && faults.is_empty()).then(|| Base { result: result(&outcome), call })
}

/// Returns the number of changes of the byte at `position`; `None` if one of them changed the result.
fn changes(examiner: &mut Examiner<'_>, bases: &[Base], position: usize) -> Option<u64> {
    let mut tries = 0;
    for base in bases {
        tries += unchanged(examiner, base, position, VALUES.into_iter())?;
    }
    let first = bases.first()?;
    Some(tries + unchanged(examiner, first, position, (0..=u8::MAX).filter(|value| !VALUES.contains(value)))?)
}

fn unchanged(
    examiner: &mut Examiner<'_>,
    base: &Base,
    position: usize,
    values: impl Iterator<Item = u8>,
) -> Option<u64> {
    let mut call = base.call.clone();
    let own = *call.payload.get(position)?;
    let mut tries = 0;
    for value in values.filter(|value| *value != own) {
        *call.payload.get_mut(position)? = value;
        if result(&examiner.caller.call(&call)) != base.result {
            return None;
        }
        tries += 1;
    }
    Some(tries)
}
