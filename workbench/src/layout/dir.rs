//! A directory with files that may belong to codecs, and the tree that it is in.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use runtime::{Engine, sanitize};
use serde_json::Value;

use super::{BadInput, example::literal, script::bundle};
use crate::{
    file::{self, Files},
    text::place::Place,
};

/// Maximum size of a file with examples, in bytes.
const EXAMPLES_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of files and directories in a tree, and of directories in each other.
pub(crate) const ENTRIES_MAX: usize = 500_000;
pub(crate) const DEPTH_MAX: usize = 32;
/// Directories that hold no codecs of the author.
pub(crate) const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];
/// Directories that say what is in them, and not which vendor or device.
const GENERIC: [&str; 6] = ["vendor", "vendors", "codecs", "drivers", "examples", "."];

/// A directory of a tree, with the names of its files.
pub(super) struct Dir<'a> {
    /// What the tree is of.
    pub(super) files: &'a dyn Files,
    /// The top of the tree: no file outside of it is read.
    pub(super) root: &'a Path,
    /// The way from there.
    pub(super) below: PathBuf,
    /// Its files, in order.
    pub(super) names: Vec<String>,
    /// Evaluates examples that are JavaScript.
    pub(super) engine: &'a Arc<Engine>,
}

impl Dir<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// The path of a file, for reports.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        let components = self.below.components().chain(Path::new(name).components());
        let below: PathBuf = components.filter(|component| *component != Component::CurDir).collect();
        if self.root == Path::new(".") { below } else { self.root.join(below) }
    }

    /// Reads a source. A name from a file may lead anywhere in the tree, but not out of it.
    pub(super) fn script(&self, name: &str) -> Result<String, BadInput> {
        let below = self.below.join(name);
        match self.files.read_script_within(self.root, &below) {
            Ok(text) => {
                bundle::bundle(self.files, self.root, &below, text).map_err(|reason| self.bad(name, 1, &reason))
            }
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                Err(BadInput::NoScript { file: self.path(name).display().to_string(), source })
            }
            Err(source) => Err(self.unreadable(name, source)),
        }
    }

    /// Reads a file with examples.
    pub(super) fn text(&self, name: &str) -> Result<String, BadInput> {
        let text = self.files.read_within(self.root, &self.below.join(name), EXAMPLES_BYTES_MAX);
        text.map_err(|source| self.unreadable(name, source))
    }

    /// Opens a file.
    pub(super) fn open(&self, name: &str) -> io::Result<Box<dyn io::Read>> {
        self.files.open_within(self.root, &self.below.join(name))
    }

    /// The first bytes of a file, which tell its format.
    pub(super) fn start(&self, name: &str) -> io::Result<String> {
        let mut reader = BufReader::new(self.open(name)?);
        reader.fill_buf().map(file::decode_start)
    }

    /// The text of a script that cannot be read: it may be too long or in another encoding, of which ASCII is left.
    pub(super) fn raw_text(&self, name: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.open(name)?.take(file::SCRIPT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(file::decode_start(&bytes).replace('\0', ""))
    }

    /// Reads a file with a value of JSON or JavaScript; also returns its text.
    pub(super) fn value(&self, name: &str) -> Result<(Value, String), BadInput> {
        let text = self.text(name)?;
        let value = literal::evaluate(&text, self.engine);
        value.map(|value| (value, text)).map_err(|(line, reason)| self.bad(name, line, &reason))
    }

    pub(super) fn bad(&self, name: &str, line: usize, reason: &str) -> BadInput {
        // The reason may quote the file.
        BadInput::Line { file: self.path(name).display().to_string(), line: line as u64, reason: sanitize(reason) }
    }

    /// Examples of a script that is not there.
    pub(super) fn orphan(&self, name: &str, reason: &str) -> BadInput {
        BadInput::Orphan { file: self.path(name).display().to_string(), reason: sanitize(reason) }
    }

    pub(super) fn unreadable(&self, name: &str, source: io::Error) -> BadInput {
        BadInput::File { file: self.path(name).display().to_string(), source }
    }

    /// The name of a codec in reports: the way from the top of the tree, without what every repository has.
    pub(super) fn id(&self, name: &str) -> String {
        let parts = self.below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let mut parts: Vec<String> = parts.filter(|part| !GENERIC.contains(&part.as_str())).collect();
        // Many repositories have a directory for each device.
        if !name.is_empty() && parts.last().is_none_or(|last| last != name) {
            parts.push(name.to_owned());
        }
        match parts.is_empty() {
            true => self.root.file_name().map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned()),
            false => parts.join("/"),
        }
    }

    /// A place without an expectation that could be replaced.
    pub(super) fn place(&self, name: &str, line: usize) -> Place {
        Place { file: Arc::new(self.path(name)), line, expectation: None }
    }
}

/// A tree of directories, which starts at `root`.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) root: &'a Path,
    /// Evaluates examples that are JavaScript.
    pub(crate) engine: &'a Arc<Engine>,
}

impl<'a> Tree<'a> {
    /// All directories, in order, and their regular files. Symbolic links are left out.
    pub(super) fn walk(self) -> (Vec<Dir<'a>>, Vec<BadInput>) {
        let mut walk = Walk::new(self);
        let mut next = vec![PathBuf::new()];
        while let Some(below) = next.pop() {
            let mut dirs = walk.dir(&below);
            if below.components().count() >= DEPTH_MAX && !dirs.is_empty() {
                walk.problem(&self.root.join(&below), &format!("directories are nested more than {DEPTH_MAX} deep"));
                dirs.clear();
            }
            next.extend(dirs.into_iter().rev().map(|name| below.join(name)));
        }
        (walk.dirs, walk.problems)
    }

    /// One directory, without those in it.
    pub(super) fn one(self, below: &Path) -> (Vec<Dir<'a>>, Vec<BadInput>) {
        let mut walk = Walk::new(self);
        walk.dir(below);
        (walk.dirs, walk.problems)
    }
}

struct Walk<'a> {
    tree: Tree<'a>,
    dirs: Vec<Dir<'a>>,
    problems: Vec<BadInput>,
    left: usize,
}

impl<'a> Walk<'a> {
    fn new(tree: Tree<'a>) -> Self {
        Self { tree, dirs: Vec::new(), problems: Vec::new(), left: ENTRIES_MAX }
    }

    /// Adds a directory, and returns the names of those in it.
    fn dir(&mut self, below: &Path) -> Vec<String> {
        let Tree { files, root, engine } = self.tree;
        let path = root.join(below);
        let entries = match files.entries(&path) {
            Ok(entries) => entries,
            Err(source) => {
                self.problems.push(BadInput::File { file: path.display().to_string(), source });
                return Vec::new();
            }
        };
        let (mut names, mut dirs) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry.name.into_string() {
                Ok(name) if entry.is_dir && !SKIPPED.contains(&name.as_str()) => dirs.push(name),
                Ok(name) if !entry.is_dir => names.push(name),
                Ok(_) => {}
                Err(name) => self.problem(&path.join(name), "its name is not UTF-8"),
            }
        }
        let Some(left) = self.left.checked_sub(names.len() + dirs.len()) else {
            self.problem(&path, &format!("the tree has more than {ENTRIES_MAX} files"));
            return Vec::new();
        };
        self.left = left;
        names.sort();
        dirs.sort();
        self.dirs.push(Dir { files, root, below: below.to_owned(), names, engine });
        dirs
    }

    fn problem(&mut self, path: &Path, reason: &str) {
        let file = path.display().to_string();
        self.problems.push(BadInput::File { file, source: io::Error::other(reason.to_owned()) });
    }
}
