//! Leaves out codecs that were found before: a file may be named twice, or beside the directory that it is in.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use runtime::Dialect;

use crate::{
    codec::Codec,
    file::normal,
    layout::{BadInput, Found},
};

/// Codecs and problems that were found through earlier paths.
#[derive(Default)]
pub(super) struct Seen {
    codecs: HashSet<CodecKey>,
    problems: HashSet<(PathBuf, u64, String)>,
}

/// Place of the first example, the script, and the dialect. The id depends on the path that was named.
type CodecKey = (Option<(PathBuf, usize)>, Option<PathBuf>, Option<Dialect>);

impl Seen {
    /// Leaves out those after the first so many codecs and problems that were found through an earlier path.
    pub(super) fn leave_out(&mut self, found: &mut Found, (codecs, problems): (usize, usize)) {
        let new: Vec<_> = found.codecs.split_off(codecs).into_iter().map(|codec| (codec_key(&codec), codec)).collect();
        let (keys, new): (Vec<_>, Vec<_>) = new.into_iter().filter(|(key, _)| !self.codecs.contains(key)).unzip();
        // One file may have several of the same key.
        self.codecs.extend(keys.into_iter().filter(|key| key.0.is_some() || key.1.is_some()));
        found.codecs.extend(new);

        let homes = found.homes.split_off(problems.min(found.homes.len()));
        let new = found.problems.split_off(problems).into_iter().zip(homes);
        let new: Vec<_> = new.map(|(problem, home)| (problem_key(&problem), problem, home)).collect();
        let is_new = |key: &Option<_>| key.as_ref().is_none_or(|key| !self.problems.contains(key));
        let new: Vec<_> = new.into_iter().filter(|(key, ..)| is_new(key)).collect();
        for (key, problem, home) in new {
            self.problems.extend(key);
            found.problems.push(problem);
            found.homes.push(home);
        }
    }
}

fn codec_key(codec: &Codec) -> CodecKey {
    let place = codec.examples.iter().find_map(|example| example.place.as_ref());
    let place = place.map(|place| (normal(&place.file), place.line));
    (place, codec.script_file.as_deref().map(normal), codec.dialect)
}

fn problem_key(problem: &BadInput) -> Option<(PathBuf, u64, String)> {
    problem.place().map(|(file, line)| (normal(Path::new(file)), line, problem.reason()))
}
