//! The uplinks on which functions ran, and what came of them, in words that all parts of the page share.

use api::rest::handler::Verdicts;

use crate::{functions::trial::Verdict, site::page::shown};

/// Names the uplinks that functions were tried on: the latest ones of a device, or of all devices together.
pub(super) fn latest(count: u64, dev_id: &str) -> String {
    let of = if dev_id.is_empty() { "all devices together".to_owned() } else { shown(dev_id) };
    match count {
        1 => format!("the latest uplink of {of}"),
        _ => format!("the latest {count} uplinks of {of}"),
    }
}

/// Names the uplinks that functions were compared on: the latest ones of a device, or of each device.
pub(super) fn latest_of_each(count: u64, per_device: u32, dev_id: &str) -> String {
    match (dev_id.is_empty(), count) {
        (false, _) => latest(count, dev_id),
        (true, 1) => format!("1 uplink, the latest {per_device} of each device"),
        (true, _) => format!("{count} uplinks, the latest {per_device} of each device"),
    }
}

/// The verdicts that there are, each with its number of uplinks, the worst first.
pub(super) fn counts(verdicts: &Verdicts) -> Vec<(u64, Verdict)> {
    let all = [
        (verdicts.newly_failing, Verdict::NewlyFailing),
        (verdicts.still_failing, Verdict::StillFailing),
        (verdicts.changed, Verdict::Changed),
        (verdicts.newly_decoded, Verdict::NewlyDecoded),
        (verdicts.equal, Verdict::Equal),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_whose_latest_uplinks_they_are() {
        assert_eq!(latest(10, ""), "the latest 10 uplinks of all devices together");
        assert_eq!(latest(1, "a\u{202e}"), r"the latest uplink of a\u202e");
        assert_eq!(latest_of_each(34, 10, ""), "34 uplinks, the latest 10 of each device");
        assert_eq!(latest_of_each(10, 10, "dev-1"), latest(10, "dev-1"));
    }

    #[test]
    fn only_verdicts_that_there_are_are_counted() {
        let verdicts = Verdicts { equal: 2, newly_failing: 1, ..Verdicts::default() };
        assert_eq!(counts(&verdicts), [(1, Verdict::NewlyFailing), (2, Verdict::Equal)]);
    }
}
