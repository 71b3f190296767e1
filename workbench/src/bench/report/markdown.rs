//! Measurements for pull requests.

use std::fmt::Write as _;

use super::rows::{describe, failed, messages, peer_failures};
use crate::{bench::figures::CodecBench, report::format::markdown::cell};

pub(super) fn markdown(codec: &CodecBench) -> String {
    let mut text = format!("### {}\n\n", cell(&codec.id));
    if let Some(failure) = &codec.failure {
        _ = writeln!(text, "It cannot be loaded: {}\n", cell(failure.lines().next().unwrap_or_default()));
    }
    if let Some(loading) = &codec.loading {
        _ = writeln!(text, "Loading: {}\n", describe(loading));
    }
    if !codec.messages.is_empty() {
        text += &messages(codec).markdown();
        text.push('\n');
    }
    for (number, message) in failed(codec) {
        let failure = message.failure.as_deref().and_then(|failure| failure.lines().next()).unwrap_or_default();
        _ = writeln!(text, "{} fails: {}\n", cell(&message.title(number)), cell(failure));
    }
    peer_failures(codec).for_each(|line| _ = writeln!(text, "{}\n", cell(&line)));
    text
}
