//! Writes the results of functions into the files that state expectations: `airlock functions test --update`.

pub(crate) mod append;
mod change;
#[cfg(unix)]
mod disk;
mod edit;
mod items;
mod json;
mod members;
#[cfg(test)]
mod tests;
mod yaml;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use runtime::sanitize;

use self::edit::Update;
use crate::{
    file::BYTE_ORDER_MARK,
    layout::BadInput,
    report::{CodecReport, ExampleOutcome, ExampleReport},
};

/// Maximum number of expectations that one run replaces.
const UPDATES_MAX: usize = 100_000;
/// Maximum size of a file that is written, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;

/// Expectations to replace, by file.
#[derive(Debug, Default)]
pub struct Updates {
    files: BTreeMap<Arc<PathBuf>, Vec<Update>>,
    count: usize,
    /// Failed examples that get no update, by the reason.
    left: BTreeMap<Left, usize>,
}

/// Reasons why a failed example gets no update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Follows,
    TooMany,
    NoResult,
    NoPlace,
}

impl Left {
    const fn reason(self) -> &'static str {
        match self {
            Self::Follows => "what they get from another example changes: run this once more",
            Self::TooMany => "one run replaces no more: run this once more",
            Self::NoResult => "nothing was returned that could be expected: mend the script, or the examples by hand",
            Self::NoPlace => "no value is stated that could be replaced: mend the examples by hand",
        }
    }
}

/// Counts and problems of an update.
#[derive(Debug, Default)]
pub struct Written {
    /// Replaced expectations.
    pub examples: usize,
    /// Failed examples whose expectation cannot be replaced, or not in this run.
    pub left: usize,
    /// Reasons for leaving them, with their numbers.
    pub reasons: Vec<(&'static str, usize)>,
    /// Files that were written.
    pub files: usize,
    /// Files and examples that could not be written.
    pub problems: Vec<BadInput>,
}

impl Updates {
    /// Adds the results of examples that returned something else than they should, or for which nothing was stated.
    pub fn add(&mut self, report: &CodecReport) {
        let updates: Vec<_> = report.examples.iter().map(update).collect();
        for (example, update) in report.examples.iter().zip(&updates) {
            let is_replaced = |(_, other): &(_, Update)| {
                update.as_ref().is_ok_and(|(_, update)| update.expectation.depends_on(&other.expectation))
            };
            let left = match update {
                Ok(_) if updates.iter().flatten().any(is_replaced) => Left::Follows,
                Ok(_) if self.count >= UPDATES_MAX => Left::TooMany,
                Ok((file, update)) => {
                    self.count += 1;
                    self.files.entry(Arc::clone(file)).or_default().push(update.clone());
                    continue;
                }
                Err(left) => *left,
            };
            if matches!(example.outcome, ExampleOutcome::Failed(_)) {
                *self.left.entry(left).or_default() += 1;
            }
        }
    }

    /// Puts the results into the files that `read` returns, and gives those that change to `write`. What stands around
    /// an expectation stays as it is, comments too; a file in which that cannot be had stays as a whole.
    pub(crate) fn apply(
        self,
        read: impl Fn(&Path) -> io::Result<String>,
        mut write: impl FnMut(&Path, &str) -> io::Result<()>,
    ) -> Written {
        let reasons: Vec<_> = self.left.iter().map(|(left, count)| (left.reason(), *count)).collect();
        let mut written = Written { left: self.left.values().sum(), reasons, ..Written::default() };
        for (file, updates) in self.files {
            let path = file.as_path();
            let count = read(path).and_then(|text| match edited(path, &text, &updates, &mut written) {
                (_, 0) => Ok(0),
                (text, count) => write(path, &text).map(|()| count),
            });
            match count {
                Ok(0) => {}
                Ok(count) => {
                    written.examples += count;
                    written.files += 1;
                }
                Err(source) => written.problems.push(BadInput::File { file: file.display().to_string(), source }),
            }
        }
        written
    }
}

fn update(example: &ExampleReport) -> Result<(Arc<PathBuf>, Update), Left> {
    let settled = example.settled.clone().ok_or(Left::NoResult)?;
    let place = example.place.as_ref().ok_or(Left::NoPlace)?;
    let expectation = place.expectation.clone().ok_or(Left::NoPlace)?;
    Ok((Arc::clone(&place.file), Update { line: place.line, expectation, settled }))
}

/// The text of a file with what can be replaced in it, and how much that is.
fn edited(path: &Path, text: &str, updates: &[Update], written: &mut Written) -> (String, usize) {
    let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let (mark, rest) = text.split_at(mark);
    let edited = edit::edit(rest, updates);
    let problems = edited.refused.into_iter().map(|(line, reason)| BadInput::Line {
        file: path.display().to_string(),
        line: line as u64,
        reason: format!("cannot be updated: {}", sanitize(&reason)),
    });
    written.problems.extend(problems);
    (format!("{mark}{}", edited.text), edited.count)
}
