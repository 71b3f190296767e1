//! Copies of objects on this disk, of which those that were used last are kept.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::listing::Object;
use crate::{
    Error,
    directory::{list, remove},
    sealed::write::UNFINISHED,
};

/// Stands for the slash of a key in the name of its copy, which no id can have.
const SLASH: &str = ",";

/// Copies of objects on this disk.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    pub(super) bytes_max: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The length of each copy, and when it was used, in uses of all.
    files: HashMap<String, (u64, u64)>,
    bytes: u64,
    uses: u64,
}

impl Cache {
    /// Finds what an earlier process has left.
    pub(super) fn open(dir: PathBuf, bytes_max: u64) -> Result<Self, Error> {
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        let cache = Self { dir, bytes_max, held: Mutex::default() };
        for path in list(&cache.dir)? {
            let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.ends_with(UNFINISHED));
            match name {
                Some(name) => cache.held().add(name.replace(SLASH, "/"), fs::metadata(&path).map_or(0, |it| it.len())),
                None => remove(&path)?,
            }
        }
        cache.make_room(None)?;
        Ok(cache)
    }

    /// The copy of an object, if there is one.
    pub(super) fn get(&self, object: &Object) -> Option<PathBuf> {
        let path = self.path(&object.key);
        let mut held = self.held();
        // Another process that uses the directory may have deleted it.
        if path.exists() {
            held.touch(&object.key).then_some(path)
        } else {
            held.forget(&object.key);
            None
        }
    }

    /// Keeps a copy, in place of those that were not used for the longest time.
    pub(super) fn add(&self, object: &Object, content: &[u8]) -> Result<PathBuf, Error> {
        let path = self.path(&object.key);
        let uses = {
            let mut held = self.held();
            held.uses += 1;
            held.uses
        };
        // Two queries may fetch the same object at once.
        let unfinished = path.with_extension(format!("{}-{uses}.{UNFINISHED}", std::process::id()));
        let written = fs::write(&unfinished, content).map_err(Error::file("write", &unfinished));
        let named = written.and_then(|()| fs::rename(&unfinished, &path).map_err(Error::file("rename", &unfinished)));
        if named.is_err() {
            _ = remove(&unfinished);
        }
        named?;
        self.held().add(object.key.clone(), content.len() as u64);
        self.make_room(Some(&object.key))?;
        Ok(path)
    }

    /// Deletes the copies of what is not in the bucket any more.
    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) -> Result<(), Error> {
        let gone: Vec<_> = self.held().files.keys().filter(|key| !is_there(key)).cloned().collect();
        gone.iter().try_for_each(|key| self.remove(key))
    }

    /// Deletes the copy of one object.
    pub(super) fn remove(&self, key: &str) -> Result<(), Error> {
        self.held().forget(key);
        remove(&self.path(key))
    }

    fn make_room(&self, newest: Option<&str>) -> Result<(), Error> {
        loop {
            let surplus = self.held().surplus(self.bytes_max, newest);
            let Some(key) = surplus else { return Ok(()) };
            self.remove(&key)?;
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(key.replace('/', SLASH))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn add(&mut self, key: String, bytes: u64) {
        self.forget(&key);
        self.uses += 1;
        self.bytes += bytes;
        self.files.insert(key, (bytes, self.uses));
    }

    fn touch(&mut self, key: &str) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.files.get_mut(key).map(|(_, used)| *used = uses).is_some()
    }

    fn forget(&mut self, key: &str) {
        if let Some((bytes, _)) = self.files.remove(key) {
            self.bytes -= bytes;
        }
    }

    /// The copy that goes first while there are too many, but not the newest, which is about to be read.
    fn surplus(&self, bytes_max: u64, newest: Option<&str>) -> Option<String> {
        let others = self.files.iter().filter(|(key, _)| Some(key.as_str()) != newest);
        let (key, _) = others.filter(|_| self.bytes > bytes_max).min_by_key(|(_, (_, used))| *used)?;
        Some(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Object {
        Object { key: format!("handler=h/app=a/day=d/{name}"), bytes: 10 }
    }

    #[test]
    fn copies_are_bounded_and_those_used_last_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path().to_owned(), 25).unwrap();
        let [one, two, three] = ["1", "2", "3"].map(object);
        assert!(cache.get(&one).is_none());
        cache.add(&one, &[1; 10]).unwrap();
        cache.add(&two, &[2; 10]).unwrap();
        assert!(cache.get(&one).is_some());
        let path = cache.add(&three, &[3; 10]).unwrap();
        assert_eq!(fs::read(path).unwrap(), [3; 10]);
        let held = |cache: &Cache| [&one, &two, &three].map(|object| cache.get(object).is_some());
        assert_eq!(held(&cache), [true, false, true]);

        fs::write(dir.path().join("x.unfinished"), "half").unwrap();
        assert_eq!(held(&Cache::open(dir.path().to_owned(), 25).unwrap()), [true, false, true]);
        let smaller = Cache::open(dir.path().to_owned(), 10).unwrap();
        assert_eq!(held(&smaller).iter().filter(|is_held| **is_held).count(), 1);
        smaller.retain(|_| false).unwrap();
        assert_eq!((held(&smaller), list(dir.path()).unwrap().len()), ([false; 3], 0));
    }
}
