//! Copies of a directory of history: read while a server uses it, and put in place as a whole.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use crate::{
    Error,
    bucket::CACHE,
    directory::{LOCK, NEW, create, if_there, list, sync},
    sealed::write::UNFINISHED,
    tail::disk::Disk,
};

/// Bytes of a file handed over at once.
const PART_BYTES: u64 = 1 << 20;

/// Hands over all files in parts, each with its path below the directory; returns how many there are. What is recorded
/// meanwhile may be missing. Nothing is moved, merged or deleted meanwhile, apart from small files that are replaced.
pub fn read_files<E: From<Error>>(dir: &Path, mut each: impl FnMut(&str, &[u8]) -> Result<(), E>) -> Result<u64, E> {
    if !dir.exists() {
        return Ok(0);
    }
    let _change = Disk::new(dir.to_owned(), None).change()?;
    let (mut paths, mut count) = (Vec::new(), 0);
    collect(dir, &mut paths)?;
    for path in paths {
        // Only our own names are there, which are ASCII.
        let Some(name) = path.strip_prefix(dir).ok().and_then(Path::to_str) else { continue };
        let Some(file) = if_there(File::open(&path).map(Some).map_err(Error::file("open", &path)))? else { continue };
        read_file((file, &path), |part| each(name, part))?;
        count += 1;
    }
    Ok(count)
}

/// All files below a directory, but locks and those that are not whole.
fn collect(dir: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Error> {
    for path in if_there(list(dir))? {
        let is_unfinished = path.extension().is_some_and(|extension| extension == UNFINISHED || extension == NEW);
        let metadata = fs::symlink_metadata(&path).map(Some).map_err(Error::file("read", &path));
        let Some(metadata) = if_there(metadata)? else { continue };
        if metadata.is_dir() && !path.ends_with(CACHE) {
            collect(&path, paths)?;
        } else if metadata.is_file() && !path.ends_with(LOCK) && !is_unfinished {
            paths.push(path);
        }
    }
    Ok(())
}

/// Hands over a file in parts, at least one.
fn read_file<E: From<Error>>(
    (mut file, path): (File, &Path),
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut part = Vec::new();
    loop {
        let is_first = part.is_empty();
        part.clear();
        (&mut file).take(PART_BYTES).read_to_end(&mut part).map_err(Error::file("read", path))?;
        if is_first || !part.is_empty() {
            each(&part)?;
        }
        if part.len() < PART_BYTES as usize {
            return Ok(());
        }
    }
}

/// Files that are to become a directory of history, beside the one that they replace.
#[derive(Debug)]
pub struct NewDirectory {
    dir: PathBuf,
    unfinished: PathBuf,
}

impl NewDirectory {
    /// Files that are to replace this directory, if there is one. An earlier attempt that was interrupted is deleted.
    pub fn create(dir: &Path) -> Result<Self, Error> {
        let mut unfinished = dir.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let this = Self { dir: dir.to_owned(), unfinished: unfinished.into() };
        this.check_replaceable()?;
        this.delete()?;
        create(&this.unfinished)?;
        Ok(this)
    }

    /// Adds a part to the file with this path below the directory. An error if it would not be below it.
    pub fn add(&mut self, name: &str, part: &[u8]) -> Result<(), Error> {
        let path = self.unfinished.join(name);
        if !Path::new(name).components().all(|component| matches!(component, Component::Normal(_))) || name.is_empty() {
            return Err(Error::damaged(&path, "it is not below the directory"));
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        let file = File::options().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(part).and_then(|()| file.sync_data()));
        written.map_err(Error::file("write", &path))
    }

    /// Puts the files in place. What was there before is kept under this name; returns whether anything was.
    pub fn finish(self, keep_as: &Path) -> Result<bool, Error> {
        sync_all(&self.unfinished)?;
        let replaces = self.dir.exists();
        if replaces {
            fs::rename(&self.dir, keep_as).map_err(Error::file("rename", &self.dir))?;
        }
        fs::rename(&self.unfinished, &self.dir).map_err(Error::file("rename", &self.unfinished))?;
        sync(self.parent())?;
        Ok(replaces)
    }

    /// A mount point cannot be renamed, which nobody should learn when the rest is replaced already.
    fn check_replaceable(&self) -> Result<(), Error> {
        let device = |path: &Path| Ok::<_, Error>(fs::metadata(path).map_err(Error::file("read", path))?.dev());
        match self.parent() {
            parent if self.dir.exists() && device(&self.dir)? != device(parent)? => {
                let why = io::Error::other("it is a mount point: set history.dir to a directory below it");
                Err(Error::file("replace", &self.dir)(why))
            }
            _ => Ok(()),
        }
    }

    fn parent(&self) -> &Path {
        let parent = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    fn delete(&self) -> Result<(), Error> {
        if_there(fs::remove_dir_all(&self.unfinished).map_err(Error::file("delete", &self.unfinished)))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Once it is finished, there is nothing under that name. What cannot be deleted is, when it is tried again.
        _ = self.delete();
    }
}

/// Makes the names in a directory and in those below it last.
fn sync_all(dir: &Path) -> Result<(), Error> {
    for path in list(dir)?.into_iter().filter(|path| path.is_dir()) {
        sync_all(&path)?;
    }
    sync(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<(String, usize)> {
        let mut files = Vec::<(String, usize)>::new();
        let count = read_files::<Error>(dir, |name, part| {
            match files.last_mut().filter(|(last, _)| last == name) {
                Some((_, bytes)) => *bytes += part.len(),
                None => files.push((name.to_owned(), part.len())),
            }
            Ok(())
        });
        assert_eq!(count.unwrap(), files.len() as u64);
        files
    }

    #[test]
    fn what_is_not_whole_or_is_renamed_meanwhile_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| root.path().join(name);
        for dir in ["bucket", "removed"] {
            fs::create_dir(file(dir)).unwrap();
        }
        for name in ["bucket/uploaded", "bucket/uploaded.new", "removed/a", "removed/b.new"] {
            fs::write(file(name), name).unwrap();
        }
        let mut names = Vec::new();
        let count = read_files::<Error>(root.path(), |name, _| {
            names.push(name.to_owned());
            fs::rename(file("removed/a"), file("removed/c")).unwrap();
            Ok(())
        });
        assert_eq!((count.unwrap(), names), (1, vec!["bucket/uploaded".to_owned()]));
    }

    #[test]
    fn a_copy_replaces_a_directory_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let (dir, keep_as) = (root.path().join("history"), root.path().join("kept"));
        assert!(files(&dir).is_empty());
        for (name, bytes) in
            [("tail/1/a.tail", 0), ("app=a/day=1/1-2-x.parquet", (1 << 20) + 5), ("removed/a", 1 << 20)]
        {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![7; bytes]).unwrap();
        }
        fs::write(dir.join("tail/1/lock"), "").unwrap();
        fs::write(dir.join("app=a/day=1/2-3-x.unfinished"), "half").unwrap();
        let before = files(&dir);
        let names: Vec<_> = before.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["app=a/day=1/1-2-x.parquet", "removed/a", "tail/1/a.tail"]);

        let mut new = NewDirectory::create(&root.path().join("other")).unwrap();
        read_files(&dir, |name, part| new.add(name, part)).unwrap();
        assert!(!root.path().join("other").exists());
        assert!(!new.finish(&keep_as).unwrap() && files(&root.path().join("other")) == before);

        let mut new = NewDirectory::create(&dir).unwrap();
        new.add("removed/b", b"b").unwrap();
        for outside in ["../x", "/x", "a/../../x", ""] {
            assert!(new.add(outside, b"x").is_err(), "{outside}");
        }
        drop(NewDirectory::create(&root.path().join("third")).unwrap());
        assert!(new.finish(&keep_as).unwrap());
        assert_eq!((files(&dir), files(&keep_as)), (vec![("removed/b".to_owned(), 1)], before));
        let left: Vec<_> =
            list(root.path()).unwrap().into_iter().map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(left, ["history", "kept", "other"]);
    }
}
