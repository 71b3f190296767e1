//! Measurements for a terminal.

use std::fmt::Write as _;

use runtime::sanitize;

use super::rows::{describe, failed, messages, peer_failures};
use crate::bench::figures::CodecBench;

pub(super) fn human(codec: &CodecBench) -> String {
    let mut text = format!("{}\n", sanitize(&codec.id));
    if let Some(failure) = &codec.failure {
        failure.lines().for_each(|line| _ = writeln!(text, "  {}", sanitize(line)));
    }
    if let Some(loading) = &codec.loading {
        _ = writeln!(text, "  loading: {}", describe(loading));
    }
    match codec.messages.is_empty() {
        true if codec.failure.is_none() => text += "  no examples to measure\n",
        true => {}
        false => text += &messages(codec).text(),
    }
    for (number, message) in failed(codec) {
        _ = writeln!(text, "  {} fails:", sanitize(&message.title(number)));
        message.failure.iter().flat_map(|it| it.lines()).for_each(|line| _ = writeln!(text, "    {}", sanitize(line)));
    }
    peer_failures(codec).for_each(|line| _ = writeln!(text, "  {}", sanitize(&line)));
    text + "\n"
}
