//! Names of files and directories: they say what is inside, so that most files need not be opened.

use std::{
    fs,
    path::{Path, PathBuf},
};

use types::AppId;

use crate::{
    Error, RecordId,
    directory::{if_there, list},
    record::moment,
    sealed::{
        replaced,
        write::{FILE_EXTENSION, UNFINISHED},
    },
};

/// A file, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileName {
    pub(crate) path: PathBuf,
    /// The millisecond of its first record.
    pub(crate) first: u64,
    /// The millisecond of its last record.
    pub(crate) last: u64,
}

/// The files of a day of an application.
#[derive(Clone, Debug)]
pub(crate) struct DayDir {
    pub(crate) path: PathBuf,
    /// Start of the day, in milliseconds since 1970.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Files in the directory of a day.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Oldest first.
    pub(crate) files: Vec<FileName>,
    /// Parquet files that others have put there.
    pub(crate) foreign: Vec<PathBuf>,
    /// Leftovers of a process that was killed.
    pub(crate) unfinished: Vec<PathBuf>,
}

impl FileName {
    /// The name of a file in the directory of its day. `origin` is unique to the records.
    pub(crate) fn new(dir: &Path, first: RecordId, last: RecordId, origin: &str) -> Self {
        let (first, last) = (first.millis, last.millis);
        Self { path: dir.join(format!("{first}-{last}-{origin}.{FILE_EXTENSION}")), first, last }
    }

    /// Parses the name of a file; none if it is not one of ours.
    pub(crate) fn parse(path: &Path) -> Option<Self> {
        let mut parts = path.file_stem()?.to_str()?.splitn(3, '-');
        let (first, last) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().filter(|_| first <= last).map(|_| Self { path: path.to_owned(), first, last })
    }

    /// The lowest id that a record in it can have.
    pub(crate) fn first_id(&self) -> RecordId {
        RecordId::first(self.first)
    }

    /// The highest id that a record in it can have.
    pub(crate) fn last_id(&self) -> RecordId {
        RecordId::last(self.last)
    }

    /// Its length in bytes; zero if it is not there any more.
    pub(crate) fn bytes(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }
}

/// The directory of an application.
pub(crate) fn application_dir(root: &Path, app_id: &str) -> PathBuf {
    root.join(format!("app={app_id}"))
}

/// The directory of a day of it.
pub(crate) fn day_dir(root: &Path, app_id: &str, millis: u64) -> PathBuf {
    application_dir(root, app_id).join(format!("day={}", moment::day(millis)))
}

/// All applications that have files.
pub(crate) fn applications(root: &Path) -> Result<Vec<AppId>, Error> {
    let ids = list(root)?.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("app=")?.parse().ok()
    });
    Ok(ids.collect())
}

/// The days of an application that have files, oldest first.
pub(crate) fn days(root: &Path, app_id: &AppId) -> Result<Vec<DayDir>, Error> {
    let dir = application_dir(root, app_id.as_str());
    let paths = if_there(list(&dir))?;
    let day = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("day=")?;
        let (start, end) = (moment::day_start(name)?, moment::day_end(name)?);
        Some(DayDir { path, start, end })
    };
    Ok(paths.into_iter().filter_map(day).collect())
}

impl DayDir {
    /// Lists its files for those who change them, after what a killed process has begun was ended: without the new
    /// file, those that it has replaced would be there again.
    pub(crate) fn settled_files(&self) -> Result<Files, Error> {
        replaced::settle_all(&if_there(list(&self.path))?)?;
        self.files()
    }

    /// Lists its files, without those that others have replaced.
    pub(crate) fn files(&self) -> Result<Files, Error> {
        let paths = if_there(list(&self.path))?;
        let mut files = Files::default();
        for path in &paths {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(FILE_EXTENSION) => match FileName::parse(path) {
                    Some(file) => files.files.push(file),
                    None => files.foreign.push(path.clone()),
                },
                Some(UNFINISHED) => files.unfinished.push(path.clone()),
                _ => {}
            }
        }
        let gone = replaced::hidden(&paths);
        files.files.retain(|file| !gone.contains(&file.path));
        files.files.sort_by_key(|file| (file.first, file.last));
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_inside() {
        let file = FileName::new(Path::new("d"), RecordId::first(5), RecordId::last(17), "0a-b");
        assert_eq!(file.path, Path::new("d/5-17-0a-b.parquet"));
        assert_eq!(FileName::parse(&file.path), Some(file));
        for name in ["", "5-17.parquet", "x-17-a.parquet", "17-5-a.parquet", "5.parquet", "other.parquet"] {
            assert_eq!(FileName::parse(Path::new(name)), None, "{name}");
        }
    }
}
