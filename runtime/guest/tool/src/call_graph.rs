//! Who calls whom, and which functions must be charged so that no cycle of calls is free.

use std::collections::{BTreeMap, BTreeSet};
use walrus::ir::{Call, Visitor, dfs_in_order};
use walrus::{ElementItems, FunctionId, FunctionKind, LocalFunction, Module};

/// Direct calls of each function that has a body.
pub(crate) struct Calls {
    callees: BTreeMap<FunctionId, BTreeSet<FunctionId>>,
}

impl Calls {
    /// Reads the calls of all functions.
    pub(crate) fn of(module: &Module) -> Self {
        let callees = local_functions(module).map(|(id, function)| (id, callees(function))).collect();
        Self { callees }
    }

    /// An order in which each function comes after all it calls, when calls of `charged` functions do not count.
    /// `Err` names the functions that are left in cycles.
    pub(crate) fn order(&self, charged: &BTreeSet<FunctionId>) -> Result<Vec<FunctionId>, BTreeSet<FunctionId>> {
        let mut order = Vec::new();
        let mut done: BTreeSet<FunctionId> = charged.clone();
        let mut left: BTreeSet<FunctionId> = self.callees.keys().copied().filter(|id| !charged.contains(id)).collect();
        loop {
            let is_free =
                |id: &FunctionId| self.callees[id].iter().all(|callee| done.contains(callee) || !left.contains(callee));
            let next: Vec<FunctionId> = left.iter().copied().filter(is_free).collect();
            if next.is_empty() {
                return if left.is_empty() { Ok(order) } else { Err(left) };
            }
            for id in next {
                left.remove(&id);
                done.insert(id);
                order.push(id);
            }
        }
    }

    /// The functions to charge beside `seed` so that every cycle of calls holds one that is charged.
    pub(crate) fn break_cycles(&self, seed: BTreeSet<FunctionId>) -> BTreeSet<FunctionId> {
        let mut charged = seed;
        while let Err(left) = self.order(&charged) {
            // The one with the most calls among those left breaks the most cycles; equal ones by their order.
            let degree = |id: &FunctionId| {
                let outward = self.callees[id].intersection(&left).count();
                let inward = left.iter().filter(|other| self.callees[other].contains(id)).count();
                outward * inward
            };
            let chosen = left.iter().copied().max_by_key(|id| (degree(id), std::cmp::Reverse(*id)));
            charged.extend(chosen);
        }
        charged
    }
}

/// All functions that have a body.
pub(crate) fn local_functions(module: &Module) -> impl Iterator<Item = (FunctionId, &LocalFunction)> {
    module.funcs.iter().filter_map(|function| match &function.kind {
        FunctionKind::Local(local) => Some((function.id(), local)),
        _ => None,
    })
}

/// The functions that an indirect call can reach: all that are in a table.
pub(crate) fn in_tables(module: &Module) -> BTreeSet<FunctionId> {
    let functions = module.elements.iter().flat_map(|element| match &element.items {
        ElementItems::Functions(functions) => functions.clone(),
        ElementItems::Expressions(..) => Vec::new(),
    });
    functions.collect()
}

fn callees(function: &LocalFunction) -> BTreeSet<FunctionId> {
    #[derive(Default)]
    struct Collect(BTreeSet<FunctionId>);
    impl<'a> Visitor<'a> for Collect {
        fn visit_call(&mut self, call: &Call) {
            self.0.insert(call.func);
        }
    }
    let mut collect = Collect::default();
    dfs_in_order(&mut collect, function, function.entry_block());
    collect.0
}
