//! Changes of a text, and the value that it must have with them.

use std::ops::Range;

use serde_json::Value;

use crate::text::place::Step;

/// The bytes to replace, and what by.
pub(super) type Change = (Range<usize>, String);

/// A value and its place in a text.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) path: &'a [Step],
    /// The old value, as far as it is known: a text of JavaScript is not read.
    pub(super) old: Option<Value>,
    pub(super) value: Value,
}

impl Target<'_> {
    /// The same, so that all of it is written anew.
    pub(super) fn whole(&self) -> Target<'_> {
        Target { path: self.path, old: None, value: self.value.clone() }
    }
}

/// `text` with `changes`, none of which may touch another.
pub(super) fn apply(text: &str, mut changes: Vec<Change>) -> Result<String, String> {
    // What is put in comes before what is taken out there.
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut new, mut end) = (String::with_capacity(text.len()), 0);
    for (range, replacement) in changes {
        new += text.get(end..range.start).ok_or("it is written in one place with another example")?;
        new += &replacement;
        end = range.end;
    }
    Ok(new + text.get(end..).unwrap_or_default())
}

/// `root` with the values of `targets`: what the changed text must mean.
pub(super) fn with(mut root: Value, targets: &[Target<'_>]) -> Option<Value> {
    for Target { path, value, .. } in targets {
        let (last, outer) = path.split_last()?;
        let outer = outer.iter().try_fold(&mut root, |value, step| match step {
            Step::Index(index) => value.get_mut(*index),
            Step::Name(name) => value.get_mut(name),
        })?;
        match last {
            Step::Index(index) => *outer.get_mut(*index)? = value.clone(),
            Step::Name(name) => _ = outer.as_object_mut()?.insert(name.clone(), value.clone()),
        }
    }
    Some(root)
}

/// The error of a change that does not read back as it should.
pub(super) const NOT_THE_SAME: &str = "the file would not say the same otherwise: write it by hand";
