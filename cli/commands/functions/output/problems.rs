//! Tells what could not be read.

use std::io::{self, Write};

use workbench::BadInput;

use crate::terminal::sanitize;

/// Tells what could not be read: all of it, and an error if there was any.
pub(in crate::commands::functions) fn end(mut problems: Vec<BadInput>) -> anyhow::Result<()> {
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0).into()),
        _ => {
            let count = problems.iter().map(BadInput::count).sum();
            for problem in problems {
                complain(&format!("{:#}", anyhow::Error::from(problem)));
            }
            Err(BadInput::Several(count).into())
        }
    }
}

/// The same where other codecs were found: examples whose script is missing do not make those fail.
pub(in crate::commands::functions) fn end_beside(codecs: usize, problems: Vec<BadInput>) -> anyhow::Result<()> {
    let (orphans, problems): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| codecs > 0 && problem.is_orphan());
    orphans.iter().for_each(|orphan| complain(&orphan.describe()));
    end(problems)
}

/// Writes a line to standard error. With that closed, there is nobody to tell.
pub(in crate::commands::functions) fn complain(text: &str) {
    _ = writeln!(io::stderr(), "{}", sanitize(text));
}
