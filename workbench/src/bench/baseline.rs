//! Earlier measurements, kept in a file, and how new ones differ from them.

use std::{
    collections::HashMap,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{
    figures::{Bench, Change, CodecBench, MessageBench},
    statistics::Summary,
};
use crate::file::{disk::read_file, pending_file::PendingFile};

/// Maximum size of a baseline, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 64;

/// The name of a baseline: it is in the file `NAME.bench.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineName(String);

impl FromStr for BaselineName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if name == "-" {
            let message = "a baseline is a file and not printed: name it, as in main, or print with --format json";
            return Err(message.to_owned());
        }
        match (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_valid) && !name.starts_with('.') {
            true => Ok(Self(name.to_owned())),
            false => Err("a baseline's name has letters, digits, `-`, `_` and `.`, as in main".to_owned()),
        }
    }
}

impl BaselineName {
    /// The file in `dir`.
    pub fn file(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.bench.json", self.0))
    }
}

/// The most by which fuel may rise, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold(f64);

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
        let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.map(Self).ok_or_else(|| "the most by which fuel may rise is a percentage, as in 1%".to_owned())
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// Number of messages that were found in a baseline, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Messages that are in the baseline too.
    pub known: usize,
    /// Messages that are not.
    pub new: usize,
}

impl Bench {
    /// Reads a baseline.
    pub fn read(file: &Path) -> io::Result<Self> {
        let text = read_file(file, FILE_BYTES_MAX)
            .map_err(|error| io::Error::new(error.kind(), format!("{error}; --save-baseline writes one")))?;
        let no_baseline = |_| io::Error::other("it is no baseline; --save-baseline writes one");
        serde_json::from_str(&text).map_err(no_baseline)
    }

    /// Saves the measurements as a baseline. A file that exists is replaced once the new one is whole.
    pub fn save(&self, file: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        let mut new = PendingFile::create(file)?;
        new.write_all(text.as_bytes())?;
        new.write_all(b"\n")?;
        new.finish()
    }

    /// Compares each message, and the loading of each codec, with `baseline`.
    pub fn compare(&mut self, baseline: &Self) -> Compared {
        let mut by_id: HashMap<&str, Vec<&CodecBench>> = HashMap::new();
        baseline.codecs.iter().for_each(|codec| by_id.entry(&codec.id).or_default().push(codec));
        let mut compared = Compared::default();
        for index in 0..self.codecs.len() {
            let (earlier, rest) = self.codecs.split_at_mut(index);
            let Some(codec) = rest.first_mut() else { break };
            let same_id = by_id.get(codec.id.as_str()).map(Vec::as_slice).unwrap_or_default();
            let nth = earlier.iter().filter(|other| other.id == codec.id && other.file == codec.file).count();
            let before = in_order(same_id, codec, nth);
            let loaded = before.iter().find_map(|codec| codec.loading.as_ref());
            if let (Some(loading), Some(before)) = (&mut codec.loading, loaded) {
                loading.change = Some(change((before.fuel, &before.time), (loading.fuel, &loading.time)));
            }
            let changes: Vec<_> =
                (0..codec.messages.len()).map(|at| message_change(&codec.messages, at, &before)).collect();
            for (message, change) in codec.messages.iter_mut().zip(changes) {
                message.change = change;
                *(if change.is_some() { &mut compared.known } else { &mut compared.new }) += 1;
            }
        }
        compared
    }

    /// Returns the number of messages and codecs that use more fuel than in the baseline, by more than `threshold`.
    /// Time does not count: it depends on the machine and on what else runs there.
    pub fn risen(&self, threshold: Threshold) -> usize {
        let changes = self.codecs.iter().flat_map(|codec| {
            let loading = codec.loading.iter().filter_map(|loading| loading.change);
            loading.chain(codec.messages.iter().filter_map(|message| message.change))
        });
        changes.filter(|change| change.fuel_percent > threshold.0).count()
    }
}

/// The codecs of the baseline with the id of `codec`, the likeliest first: several may have that id, in other files, or
/// beside one script in several layouts. `nth` is how many of its id and file came before it.
fn in_order<'a>(same_id: &[&'a CodecBench], codec: &CodecBench, nth: usize) -> Vec<&'a CodecBench> {
    let (mut own, others): (Vec<_>, Vec<_>) = same_id.iter().copied().partition(|before| before.file == codec.file);
    if nth < own.len() {
        own[..=nth].rotate_right(1);
    }
    own.into_iter().chain(others).collect()
}

/// Compares the message at `at` with the same one of the first codec that has it. If several differ only in what a
/// baseline does not record, such as the time, they are compared in order. Returns `None` if no codec has the message.
fn message_change(messages: &[MessageBench], at: usize, before: &[&CodecBench]) -> Option<Change> {
    let message = &messages[at];
    let is_same = |other: &&MessageBench| key(other) == key(message);
    let found = before.iter().find(|codec| codec.messages.iter().any(|other| is_same(&other)))?;
    let mut same: Vec<&MessageBench> = found.messages.iter().filter(is_same).collect();
    if same.iter().any(|other| other.description == message.description) {
        same.retain(|other| other.description == message.description);
    }
    let is_like = |other: &&MessageBench| is_same(other) && other.description == message.description;
    let earlier = messages[..at].iter().filter(is_like).count();
    let before = same.get(earlier).or(same.last())?;
    Some(change((before.fuel, &before.time), (message.fuel, &message.time)))
}

/// Returns the parts that identify a message: its description may change.
fn key(message: &MessageBench) -> (&str, u8, &str) {
    (&message.function, message.port, &message.input)
}

fn change(before: (u64, &Summary), now: (u64, &Summary)) -> Change {
    let percent = |before: f64, now: f64| if before == 0.0 { 0.0 } else { 100.0 * (now - before) / before };
    Change {
        fuel_before: before.0,
        fuel_percent: percent(before.0 as f64, now.0 as f64),
        time_percent: percent(before.1.median, now.1.median),
        is_time_certain: now.1.differs_from(before.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for name in ["main", "v1.2", "a_b-c"] {
            let file = name.parse::<BaselineName>().unwrap().file(Path::new("."));
            assert_eq!(file, Path::new(".").join(format!("{name}.bench.json")));
        }
        for name in ["", ".", "..", "../x", "a/b", "a b", "ä"] {
            assert!(name.parse::<BaselineName>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_threshold_is_a_percentage() {
        for (text, percent) in [("1%", 1.0), ("0", 0.0), ("2.5 %", 2.5)] {
            assert_eq!(text.parse(), Ok(Threshold(percent)), "{text}");
        }
        for text in ["", "%", "-1%", "one", "inf", "NaN%"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
    }
}
