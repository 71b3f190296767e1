//! Renders a profile as a file for speedscope.app.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Chain, Profile};

impl Profile {
    /// The file, with `name` as that of the profile.
    pub fn speedscope(&self, name: &str) -> Value {
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut frames = vec![json!({ "name": "the sandbox: payload in, result out" })];
        for chain in &self.chains {
            numbers.entry(chain.function).or_insert_with(|| {
                frames.push(json!({ "name": chain.name, "file": chain.source, "line": chain.line }));
                frames.len() - 1
            });
        }
        let used = || self.chains.iter().filter(|chain| chain.own > 0);
        let samples = used().map(|chain| self.stack(chain, &numbers)).chain([vec![0]]);
        let weights = used().map(|chain| chain.own).chain([self.outside]);
        json!({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": name,
            "exporter": concat!("airlock ", env!("CARGO_PKG_VERSION")),
            "activeProfileIndex": 0,
            "shared": { "frames": frames },
            "profiles": [{
                "type": "sampled",
                "name": format!("fuel of {name}"),
                "unit": "none",
                "startValue": 0,
                "endValue": self.fuel,
                "samples": samples.collect::<Vec<_>>(),
                "weights": weights.collect::<Vec<_>>(),
            }],
        })
    }

    /// The functions of a chain, the outermost first.
    fn stack(&self, chain: &Chain, numbers: &BTreeMap<usize, usize>) -> Vec<usize> {
        let callers = std::iter::successors(Some(chain), |chain| chain.caller.map(|caller| &self.chains[caller]));
        let mut stack: Vec<usize> = callers.filter_map(|chain| numbers.get(&chain.function).copied()).collect();
        stack.reverse();
        stack
    }
}
