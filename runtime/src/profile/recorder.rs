//! Adds up the costs of steps while a message runs.
//!
//! Fuel is what was used between two steps. It counts for the first of them, or, when that one has returned since, for
//! the step that called: that includes what built-in functions do. What is used before the first step and after the last
//! one is the sandbox's own work, such as reading the payload and writing the result, unless a limit ended the message
//! before its function had returned.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::steps::{Exit, Steps};

/// Chains of calls that are told apart; further ones count for their caller.
const CHAINS_MAX: usize = 10_000;

/// Runs and fuel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Number of runs.
    pub runs: u64,
    /// The fuel that it used, with the built-in functions that it called.
    pub fuel: u64,
    /// For a branch: number of times that it went elsewhere than to the next step.
    pub jumps: u64,
}

/// A chain of calls: a function, called by the one of another chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The chain that called, an earlier one; none for the function that the sandbox called.
    pub caller: Option<usize>,
    /// The function, in [`Steps::functions`].
    pub function: usize,
    /// The fuel that its own steps used.
    pub fuel: u64,
}

/// Costs of all steps of one or more messages.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The steps that were counted.
    pub steps: Arc<Steps>,
    /// The cost of each of [`Steps::all`].
    pub costs: Vec<StepCost>,
    /// Number of calls of each of [`Steps::functions`].
    pub calls: Vec<u64>,
    /// All chains of calls.
    pub chains: Vec<Chain>,
    /// The fuel that the sandbox itself used.
    pub outside: u64,
}

impl Recording {
    /// A recording of no message.
    pub fn new(steps: &Arc<Steps>) -> Self {
        let costs = vec![StepCost::default(); steps.all().len()];
        let calls = vec![0; steps.functions().len()];
        Self { steps: Arc::clone(steps), costs, calls, chains: Vec::new(), outside: 0 }
    }

    /// All fuel: what the messages are charged.
    pub fn fuel(&self) -> u64 {
        self.outside + self.costs.iter().map(|cost| cost.fuel).sum::<u64>()
    }
}

/// A recording and the message that it records.
pub(crate) struct Recorder {
    recording: Recording,
    /// The chain of a function that a chain called.
    callees: BTreeMap<(Option<usize>, usize), usize>,
    frames: Vec<Frame>,
    /// The fuel that was left at the last step.
    left: i64,
}

/// A function that runs.
struct Frame {
    /// The stack pointer while its own steps run; those of functions that it calls are lower.
    stack_pointer: u32,
    function: usize,
    chain: usize,
    step: usize,
}

impl Recorder {
    /// Goes on with a recording.
    pub(crate) fn new(recording: Recording) -> Self {
        let chains = recording.chains.iter().enumerate();
        let callees = chains.map(|(index, chain)| ((chain.caller, chain.function), index)).collect();
        Self { recording, callees, frames: Vec::new(), left: 0 }
    }

    /// Begins a message with this much fuel.
    pub(crate) fn start(&mut self, fuel: i64) {
        self.frames.clear();
        self.left = fuel;
    }

    /// Ends the recording of a message with this much fuel left, perhaps cut off by a limit.
    pub(crate) fn finish(mut self, left: i64, is_cut_off: bool) -> Recording {
        let has_returned = |frame: &Frame| self.recording.steps.all()[frame.step].exit == Exit::Caller;
        let running = self.frames.iter().rposition(|frame| !has_returned(frame)).filter(|_| is_cut_off);
        self.frames.truncate(running.map_or(0, |last| last + 1));
        self.charge(left);
        self.recording
    }

    /// Notes that the step at `address` is next.
    pub(crate) fn step(&mut self, left: i64, stack_pointer: u32, address: u32) {
        let steps = &self.recording.steps;
        let here = self.frames.last().filter(|frame| frame.stack_pointer == stack_pointer);
        let here = here.and_then(|frame| Some((frame.function, steps.find_in(frame.function, address)?)));
        // A step of a function that is built in counts for the step that called it.
        let Some((function, step)) = here.or_else(|| steps.find(address)) else { return };
        let is_first = steps.functions().get(function).is_some_and(|function| function.steps.start == step);
        self.leave(stack_pointer, function, is_first);
        self.charge(left);
        self.enter(stack_pointer, function, step, is_first);
        if let Some(cost) = self.recording.costs.get_mut(step) {
            cost.runs += 1;
        }
    }

    /// Ends the functions that have returned. A first step is that of another call, from the same place, unless the step
    /// before jumps there.
    fn leave(&mut self, stack_pointer: u32, function: usize, is_first: bool) {
        let steps = self.recording.steps.all();
        let is_call = |frame: &Frame| is_first && steps[frame.step].exit != Exit::First;
        let is_other = |frame: &Frame| frame.function != function || is_call(frame);
        let has_returned = |frame: &Frame| match frame.stack_pointer.cmp(&stack_pointer) {
            Ordering::Less => true,
            Ordering::Equal => is_other(frame),
            Ordering::Greater => false,
        };
        while self.frames.last().is_some_and(has_returned) {
            self.frames.pop();
        }
    }

    fn charge(&mut self, left: i64) {
        let fuel = spent(&mut self.left, left);
        let Recording { costs, chains, outside, .. } = &mut self.recording;
        match self.frames.last() {
            Some(frame) => {
                costs[frame.step].fuel += fuel;
                chains[frame.chain].fuel += fuel;
            }
            None => *outside += fuel,
        }
    }

    /// Goes on with a step of the function that runs, or of one that is called or resumed.
    fn enter(&mut self, stack_pointer: u32, function: usize, step: usize, is_first: bool) {
        match self.frames.last_mut().filter(|frame| frame.stack_pointer == stack_pointer) {
            Some(frame) => {
                if self.recording.steps.all()[frame.step].is_branch && step != frame.step + 1 {
                    self.recording.costs[frame.step].jumps += 1;
                }
                frame.step = step;
            }
            None => {
                let chain = self.chain(self.frames.last().map(|frame| frame.chain), function);
                self.frames.push(Frame { stack_pointer, function, chain, step });
                self.recording.calls[function] += u64::from(is_first);
            }
        }
    }

    fn chain(&mut self, caller: Option<usize>, function: usize) -> usize {
        if let Some(chain) = self.callees.get(&(caller, function)) {
            return *chain;
        }
        let chains = &mut self.recording.chains;
        if let Some(caller) = caller.filter(|_| chains.len() >= CHAINS_MAX) {
            return caller;
        }
        chains.push(Chain { caller, function, fuel: 0 });
        self.callees.insert((caller, function), chains.len() - 1);
        chains.len() - 1
    }
}

/// The fuel used since `last`, which becomes `left`.
fn spent(last: &mut i64, left: i64) -> u64 {
    // A message that has run out of fuel is charged what it had.
    let left = left.max(0);
    u64::try_from(std::mem::replace(last, left) - left).unwrap_or(0)
}
