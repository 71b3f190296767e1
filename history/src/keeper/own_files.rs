//! The files of this directory for a bucket: which of them it lacks, and which of those that it has are gone here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    mem,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    bucket::{Bucket, REQUESTS_MAX},
    sealed::name::{self, DayDir},
};

/// Bytes of files from which no more are put into the bucket at the same time: they are in memory.
const PUT_BYTES_MAX: usize = 8 << 20;

/// The files of this directory, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct OwnFiles {
    root: PathBuf,
    /// By their paths below it, with their lengths.
    pub(super) files: BTreeMap<String, u64>,
    /// Directories of which the bucket may lack files: what others there had may be in these.
    held: BTreeSet<PathBuf>,
    /// True if a file was gone before the bucket had it.
    has_changed: bool,
    /// The first reason why some are not known or not in the bucket.
    error: Option<Error>,
}

impl OwnFiles {
    /// Lists them. What fails holds up only the deletions in its own directory.
    pub(super) fn list(root: &Path) -> Result<Self, Error> {
        let mut own = Self { root: root.to_owned(), ..Self::default() };
        for app_id in name::applications(root)? {
            match name::days(root, &app_id) {
                Ok(days) => days.iter().for_each(|day| own.add_day(day)),
                Err(error) => own.hold(name::application_dir(root, app_id.as_str()), error),
            }
        }
        Ok(own)
    }

    fn add_day(&mut self, day: &DayDir) {
        let names = match day.files() {
            Ok(names) => names.files.into_iter(),
            Err(error) => return self.hold(day.path.clone(), error),
        };
        for file in names {
            match fs::metadata(&file.path) {
                // It is still empty, or gone.
                Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {}
                Err(source) if source.kind() == ErrorKind::NotFound => {}
                Ok(metadata) => self.add(&file.path, metadata.len()),
                Err(source) => self.hold(day.path.clone(), Error::file("read", &file.path)(source)),
            }
        }
    }

    fn add(&mut self, path: &Path, bytes: u64) {
        let path = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        self.files.extend(path.map(|path| (path.to_owned(), bytes)));
    }

    fn hold(&mut self, dir: PathBuf, error: Error) {
        self.held.insert(dir);
        self.error.get_or_insert(error);
    }

    /// Puts files into the bucket that are not there yet, a few at once. One that cannot be read does not hold up the
    /// others.
    pub(super) fn put_missing(&mut self, bucket: &Bucket, there: &BTreeMap<&str, u64>) -> Result<(), Error> {
        let missing = self.files.iter().filter(|(file, bytes)| there.get(file.as_str()) != Some(bytes));
        let missing: Vec<_> = missing.map(|(file, _)| file.clone()).collect();
        let (mut files, mut bytes) = (Vec::new(), 0);
        for file in missing {
            if let Some(content) = self.read(&file) {
                bytes += content.len();
                files.push((file, content));
            }
            if files.len() >= REQUESTS_MAX || bytes >= PUT_BYTES_MAX {
                bucket.put_files(mem::take(&mut files))?;
                bytes = 0;
            }
        }
        bucket.put_files(files)
    }

    /// The content of a file; none if it cannot be read now.
    fn read(&mut self, file: &str) -> Option<Vec<u8>> {
        let path = self.root.join(file);
        let mut dir = path.clone();
        dir.pop();
        match fs::read(&path) {
            Ok(content) => return Some(content),
            Err(source) if source.kind() == ErrorKind::NotFound => {
                self.held.insert(dir);
                self.has_changed = true;
            }
            Err(source) => self.hold(dir, Error::file("read", &path)(source)),
        }
        None
    }

    /// Returns true if this directory does not have a file any more, and the bucket has what is in its place.
    pub(super) fn is_gone(&self, file: &str) -> bool {
        let path = self.root.join(file);
        !self.files.contains_key(file) && !self.held.iter().any(|dir| path.starts_with(dir))
    }

    /// Returns false if there are other files by now, and the first error if not all are in the bucket.
    pub(super) fn into_result(self) -> Result<bool, Error> {
        self.error.map_or(Ok(!self.has_changed), Err)
    }
}
