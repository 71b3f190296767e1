//! Runs examples a second time, in a sandbox that counts steps, for the coverage. Verdicts and times are those of
//! the sandbox that live messages have.

use std::sync::Arc;

use runtime::{Engine, Recording, Sandbox, Slot};

use crate::{
    codec::{Codec, call::call},
    report::profile::coverage::Reached,
};

/// A sandbox of [`Engine::profiling`].
pub(crate) struct Counter<'a> {
    engine: &'a Arc<Engine>,
    sandbox: Sandbox,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(engine: &'a Arc<Engine>) -> Self {
        Self { engine, sandbox: engine.sandbox() }
    }

    /// Returns the coverage by the examples of a codec; `None` if it cannot be loaded or recorded.
    pub(crate) fn reached(&mut self, codec: &Codec) -> Option<Reached> {
        let functions = self.engine.load(&codec.sources(), self.engine.limits()).ok()?;
        let steps = self.sandbox.steps(&functions).ok()?;
        let mut recording = Recording::new(&steps);
        for example in codec.examples.iter().filter(|example| example.excluded.is_none()) {
            recording = self.sandbox.call_recorded(&functions, &call(&functions, example), recording).1?;
        }
        let mut reached = Reached::default();
        Slot::ALL.into_iter().for_each(|slot| reached.add(&Reached::of(&recording, slot)));
        Some(reached)
    }
}
