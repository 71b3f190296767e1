//! Fuzzes one codec.

use std::{collections::HashSet, sync::Arc};

use runtime::{Call, Engine, Function, Functions, Limits, Sandbox};

use super::{
    FuzzPlan, deadline::Deadline, finding::FuzzFinding, finding::FuzzReport, mutate, random::Random, shrink::shrink,
    target::Target, target::targets, unread::unread,
};
use crate::{
    codec::{Codec, Expected, call::call},
    report::describe,
    run::fault::{Fault, FaultKind, caller::Caller, examiner::Examiner},
};

/// Maximum number of findings of a codec. Who has so many needs no more of them.
const FINDINGS_MAX: usize = 64;
/// Fuel for each message of the plan, on average: codecs that need more get fewer messages.
const FUEL_PER_MESSAGE: u64 = 2_000_000;
/// Calls, and fuel, for making one payload smaller.
const SHRINK_CALLS_MAX: u64 = 5_000;
const SHRINK_FUEL_MAX: u64 = 10_000_000_000;
/// Maximum number of different amounts of fuel that are remembered.
const PATHS_MAX: usize = 1 << 16;
/// Wall-clock time of a call, in milliseconds: so long that fuel always runs out first, on any machine.
const TIME_MS_MAX: u64 = 120_000;

/// Runs the examples of a codec and random messages, and reports its faults.
pub(super) fn fuzz(engine: &Engine, sandbox: &mut Sandbox, codec: &Codec, plan: &FuzzPlan) -> FuzzReport {
    let deadline = Deadline::after(plan.time_max);
    let mut sources = codec.sources();
    sources.dialect = plan.dialect.or(sources.dialect);
    let limits = Limits { time_ms_max: TIME_MS_MAX, load_time_ms_max: TIME_MS_MAX, ..(**engine.limits()).clone() };
    let functions = match engine.load_uncached(&sources, &Arc::new(limits)) {
        Ok(functions) => functions,
        Err(failure) => {
            let failure = Some(describe(&failure, &sources));
            return FuzzReport { failure, ..FuzzReport::new(codec, plan) };
        }
    };
    let mut examiner = Examiner::new(sandbox, &functions, &sources);
    let targets = targets(&mut examiner, &functions, codec, plan);
    let mut campaign = Campaign {
        plan,
        deadline,
        examiner,
        random: Random::new(plan.seed),
        targets,
        paths: HashSet::new(),
        stated: Vec::new(),
        saved: Vec::new(),
        found: Vec::new(),
    };
    campaign.examples(&functions, codec);
    let ended_after = campaign.messages();
    let findings = campaign.findings();
    let unread = campaign.unread();
    let Caller { calls, fuel, .. } = campaign.examiner.caller;
    let has_targets = !campaign.targets.is_empty();
    FuzzReport { calls, fuel, has_targets, ended_after, findings, unread, ..FuzzReport::new(codec, plan) }
}

struct Campaign<'a> {
    plan: &'a FuzzPlan,
    deadline: Deadline,
    examiner: Examiner<'a>,
    random: Random,
    targets: Vec<Target>,
    /// The targets and fuel of messages so far: other fuel means another path through the function.
    paths: HashSet<(usize, u64)>,
    /// Faults that examples of the author state as right.
    stated: Vec<Fault>,
    /// Faults that examples show which must have a valid result, with the numbers of those.
    saved: Vec<(Fault, usize)>,
    found: Vec<(Fault, Call)>,
}

impl Campaign<'_> {
    /// Learns what the author knows of already.
    fn examples(&mut self, functions: &Functions, codec: &Codec) {
        for (index, example) in codec.examples.iter().enumerate() {
            for fault in self.examiner.all(&call(functions, example)) {
                match example.expected {
                    Expected::Valid => self.saved.push((fault, index + 1)),
                    _ if states(&example.expected, fault.kind) => self.stated.push(fault),
                    _ => {}
                }
            }
        }
    }

    /// Runs the messages to begin with, and as many random ones as planned. Returns after how many it ended early.
    fn messages(&mut self) -> Option<u32> {
        for target in 0..self.targets.len() {
            for call in self.targets[target].kept.clone() {
                self.message(target, &call);
            }
        }
        let fuel_max = self.examiner.caller.fuel + FUEL_PER_MESSAGE * u64::from(self.plan.count);
        for number in 0..self.plan.count {
            let target = self.random.below(self.targets.len());
            let Some(call) = self.next(target) else { break };
            self.message(target, &call);
            if self.examiner.caller.fuel > fuel_max || self.deadline.is_past() {
                return Some(number + 1);
            }
        }
        None
    }

    /// A message that was not there before, most probably.
    fn next(&mut self, target: usize) -> Option<Call> {
        let (random, length_max) = (&mut self.random, self.plan.length_max);
        let kept = &self.targets.get(target)?.kept;
        let (base, other) = (random.pick(kept)?, random.pick(kept)?);
        let payload = match random.once_in(10) {
            true => mutate::random(random, length_max),
            false => mutate::mutate(random, &base.payload, &other.payload, length_max),
        };
        Some(Call { payload, ..base.clone() })
    }

    fn message(&mut self, target: usize, call: &Call) {
        let (outcome, mut faults) = self.examiner.examine(call);
        if self.paths.len() < PATHS_MAX && self.paths.insert((target, outcome.fuel)) {
            faults.extend(self.examiner.random(call, &outcome));
            if let Some(target) = self.targets.get_mut(target) {
                target.keep(call.clone(), &mut self.random);
            }
        }
        faults.into_iter().for_each(|fault| self.found(fault, call));
    }

    /// Keeps the smallest message of each fault.
    fn found(&mut self, fault: Fault, call: &Call) {
        if self.stated.iter().any(|stated| stated.is(&fault)) {
            return;
        }
        let is_full = self.found.len() >= FINDINGS_MAX;
        match self.found.iter_mut().find(|(other, _)| other.is(&fault)) {
            Some(known) if size(call) < size(&known.1) => *known = (fault, call.clone()),
            None if !is_full => self.found.push((fault, call.clone())),
            _ => {}
        }
    }

    /// The findings, with the smallest message of each.
    fn findings(&mut self) -> Vec<FuzzFinding> {
        let found = std::mem::take(&mut self.found);
        let mut findings: Vec<FuzzFinding> = Vec::new();
        for (fault, call) in found {
            let finding = self.shrunk(fault, call);
            match findings.iter_mut().find(|other| other.has_nan_of(&finding)) {
                Some(other) => other.join(&finding),
                None => findings.push(finding),
            }
        }
        findings.sort_by_key(|finding| (finding.kind, finding.line, finding.port));
        findings
    }

    fn shrunk(&mut self, mut fault: Fault, call: Call) -> FuzzFinding {
        let (examiner, deadline) = (&mut self.examiner, self.deadline);
        let (calls_max, fuel_max) = (examiner.caller.calls + SHRINK_CALLS_MAX, examiner.caller.fuel + SHRINK_FUEL_MAX);
        let first = fault.clone();
        let payload = shrink(call.payload.clone(), |payload| {
            let is_spent = examiner.caller.calls > calls_max || examiner.caller.fuel > fuel_max || deadline.is_past();
            let same = (!is_spent).then(|| examiner.same(&Call { payload: payload.to_vec(), ..call.clone() }, &first));
            same.flatten().map(|same| fault = same).is_some()
        });
        let example = self.saved.iter().find(|(saved, _)| saved.is(&fault)).map(|(_, example)| *example);
        FuzzFinding::new(fault, Call { payload, ..call }, example)
    }

    fn unread(&mut self) -> Vec<super::Unread> {
        let decoders = self.targets.iter().filter(|target| target.function == Function::Decoder);
        decoders.flat_map(|target| unread(&mut self.examiner, target, &mut self.random, self.deadline)).collect()
    }
}

/// Shorter payloads are smaller, and of those with the same length the ones with smaller bytes.
fn size(call: &Call) -> (usize, &[u8], u8) {
    (call.payload.len(), &call.payload, call.port)
}

/// Returns true if an example expects this kind of result.
fn states(expected: &Expected, kind: FaultKind) -> bool {
    match expected {
        Expected::Throws => matches!(kind, FaultKind::Throws | FaultKind::Stack),
        Expected::Undefined => kind == FaultKind::Result,
        Expected::Timeout => kind == FaultKind::Endless,
        Expected::Value(_) => matches!(kind, FaultKind::Result | FaultKind::Nan),
        Expected::Listed(_) | Expected::Valid | Expected::Unknown => false,
    }
}
