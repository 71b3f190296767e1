//! Copies of objects, and of parts of them, on this disk. If there are too many, the owner with the most loses those that
//! were not used for the longest time, so that the queries of one take nothing from others.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt,
    path::PathBuf,
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use types::AppId;

use super::listing::{Object, application};
use crate::{
    Error, OwnerOf,
    directory::{list, remove},
    sealed::write::UNFINISHED,
};

/// Stands for the slash of a key in the name of its copy, which no id can have.
const SLASH: &str = ",";
/// Stands between the key of an object and what says which part of it is copied.
const PART: &str = ".part-";

/// Copies of objects, and of parts of them, on this disk.
pub(super) struct Cache {
    dir: PathBuf,
    pub(super) bytes_max: u64,
    owner_of: OwnerOf,
    held: Mutex<CachedFiles>,
}

#[derive(Default)]
struct CachedFiles {
    /// The length of each copy, and when it was used, in uses of all.
    files: BTreeMap<String, (u64, u64)>,
    /// The bytes of each application that has copies, and of all.
    applications: HashMap<String, u64>,
    bytes: u64,
    uses: u64,
}

impl Cache {
    /// Finds what an earlier process has left.
    pub(super) fn open(dir: PathBuf, bytes_max: u64, owner_of: OwnerOf) -> Result<Self, Error> {
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        let cache = Self { dir, bytes_max, owner_of, held: Mutex::default() };
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

    /// Keeps the copy of an object, instead of those of its parts.
    pub(super) fn add(&self, object: &Object, content: &[u8]) -> Result<PathBuf, Error> {
        self.remove_parts(object)?;
        self.write(&object.key, content)
    }

    /// The bytes of a range of an object, if there is a copy.
    pub(super) fn part(&self, object: &Object, range: &Range<u64>) -> Option<Bytes> {
        let (key, start) = self.held().part(&part_prefix(object), range)?;
        let mut part = vec![0; usize::try_from(range.end - range.start).ok()?];
        let read = File::open(self.path(&key)).and_then(|file| file.read_exact_at(&mut part, range.start - start));
        if read.is_err() {
            // Another process has deleted it, or a power cut has left it incomplete: it is fetched again.
            _ = self.remove(&key);
            return None;
        }
        Some(part.into())
    }

    /// Keeps the copy of a part of an object, unless it is larger than all copies may be.
    pub(super) fn add_part(&self, object: &Object, range: &Range<u64>, content: &[u8]) -> Result<(), Error> {
        if content.len() as u64 > self.bytes_max {
            return Ok(());
        }
        self.write(&format!("{}{}-{}", part_prefix(object), range.start, range.end), content).map(drop)
    }

    /// Deletes the copies of parts of an object.
    pub(super) fn remove_parts(&self, object: &Object) -> Result<(), Error> {
        let prefix = format!("{}{PART}", object.key);
        let keys: Vec<_> = self.held().below(&prefix).map(|(key, _)| key.clone()).collect();
        keys.iter().try_for_each(|key| self.remove(key))
    }

    /// Writes a copy, in place of others.
    fn write(&self, key: &str, content: &[u8]) -> Result<PathBuf, Error> {
        let path = self.path(key);
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
        self.held().add(key.to_owned(), content.len() as u64);
        self.make_room(Some(key))?;
        Ok(path)
    }

    /// Deletes the copies of what is not in the bucket any more.
    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) -> Result<(), Error> {
        let is_gone = |key: &&String| !is_there(key.rsplit_once(PART).map_or(key.as_str(), |(object, _)| object));
        let gone: Vec<_> = self.held().files.keys().filter(is_gone).cloned().collect();
        gone.iter().try_for_each(|key| self.remove(key))
    }

    /// Deletes one copy.
    pub(super) fn remove(&self, key: &str) -> Result<(), Error> {
        self.held().forget(key);
        remove(&self.path(key))
    }

    fn make_room(&self, newest: Option<&str>) -> Result<(), Error> {
        loop {
            let surplus = self.held().surplus(self.bytes_max, newest, |app_id| self.owner(app_id));
            let Some(key) = surplus else { return Ok(()) };
            self.remove(&key)?;
        }
    }

    fn owner(&self, app_id: &str) -> String {
        app_id.parse::<AppId>().map_or_else(|_| app_id.to_owned(), |app_id| (self.owner_of)(&app_id))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(key.replace('/', SLASH))
    }

    fn held(&self) -> MutexGuard<'_, CachedFiles> {
        self.held.lock()
    }
}

/// The start of the keys of parts of an object with this content.
fn part_prefix(object: &Object) -> String {
    let version = object.e_tag.as_deref().map_or(0, |e_tag| crc32fast::hash(e_tag.as_bytes()));
    format!("{}{PART}{version:08x}-", object.key)
}

impl CachedFiles {
    /// The key of a part that has the range, which counts as used now, and the position of the part.
    fn part(&mut self, prefix: &str, range: &Range<u64>) -> Option<(String, u64)> {
        let found = self.below(prefix).find_map(|(key, part)| {
            let (start, end) = part.split_once('-')?;
            let (start, end) = (start.parse::<u64>().ok()?, end.parse::<u64>().ok()?);
            (start <= range.start && range.end <= end).then(|| (key.clone(), start))
        })?;
        self.touch(&found.0);
        Some(found)
    }

    /// The keys that begin so, with the rest of each.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a String, &'a str)> {
        self.files.range(prefix.to_owned()..).map_while(move |(key, _)| Some((key, key.strip_prefix(prefix)?)))
    }

    fn add(&mut self, key: String, bytes: u64) {
        self.forget(&key);
        self.uses += 1;
        self.bytes += bytes;
        *self.applications.entry(app_of(&key).to_owned()).or_default() += bytes;
        self.files.insert(key, (bytes, self.uses));
    }

    fn touch(&mut self, key: &str) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.files.get_mut(key).map(|(_, used)| *used = uses).is_some()
    }

    fn forget(&mut self, key: &str) {
        let Some((bytes, _)) = self.files.remove(key) else { return };
        self.bytes -= bytes;
        if let Some(all) = self.applications.get_mut(app_of(key)) {
            *all -= bytes;
            if *all == 0 {
                self.applications.remove(app_of(key));
            }
        }
    }

    /// The copy that goes first while there are too many: of the owner with the most, and never the newest, which is about
    /// to be read.
    fn surplus(&self, bytes_max: u64, newest: Option<&str>, owner_of: impl Fn(&str) -> String) -> Option<String> {
        if self.bytes <= bytes_max {
            return None;
        }
        let mut owners: HashMap<String, (u64, HashSet<&str>)> = HashMap::new();
        for (app_id, bytes) in &self.applications {
            let (all, applications) = owners.entry(owner_of(app_id)).or_default();
            *all += bytes;
            applications.insert(app_id);
        }
        let mut owners: Vec<_> = owners.into_values().collect();
        owners.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
        // The newest may be all that the first has.
        owners.iter().find_map(|(_, applications)| {
            let copies = self.files.iter().filter(|(key, _)| Some(key.as_str()) != newest);
            let theirs = copies.filter(|(key, _)| applications.contains(app_of(key)));
            theirs.min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone())
        })
    }
}

/// The application that a copy is of.
fn app_of(key: &str) -> &str {
    application(key).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;

    fn object(name: &str) -> Object {
        object_of("a1", name)
    }

    fn object_of(app_id: &str, name: &str) -> Object {
        Object { key: format!("handler=h/app={app_id}/day=d/{name}"), bytes: 10, e_tag: None }
    }

    /// Applications whose ids begin alike have one owner.
    fn open(dir: &Path, bytes_max: u64) -> Cache {
        Cache::open(dir.to_owned(), bytes_max, Arc::new(|app_id| app_id.as_str()[..1].to_owned())).unwrap()
    }

    #[test]
    fn parts_are_found_by_what_they_have_of_which_content() {
        let dir = tempfile::tempdir().unwrap();
        let cache = open(dir.path(), 25);
        let one = object("1");
        let other = Object { e_tag: Some("\"other\"".to_owned()), ..one.clone() };
        cache.add_part(&one, &(4..9), b"45678").unwrap();
        assert_eq!(cache.part(&one, &(5..7)).unwrap(), "56");
        assert_eq!(cache.part(&one, &(4..9)).unwrap(), "45678");
        for (object, range) in [(&one, 3..5), (&one, 8..10), (&other, 5..7), (&object("11"), 5..7)] {
            assert_eq!(cache.part(object, &range), None, "{range:?}");
        }
        // Another process finds it, and one that is incomplete is none.
        let again = open(dir.path(), 25);
        assert_eq!(again.part(&one, &(5..7)).unwrap(), "56");
        fs::write(list(dir.path()).unwrap().remove(0), "4").unwrap();
        assert_eq!(again.part(&one, &(5..7)), None);

        cache.add_part(&one, &(0..9), b"012345678").unwrap();
        cache.retain(|key| key == one.key).unwrap();
        assert_eq!(cache.part(&one, &(0..1)).unwrap(), "0");
        // The whole has all parts.
        cache.add(&one, b"0123456789").unwrap();
        assert_eq!((cache.part(&one, &(0..1)), list(dir.path()).unwrap().len()), (None, 1));
    }

    #[test]
    fn a_part_that_is_larger_than_all_copies_may_be_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let cache = open(dir.path(), 4);
        cache.add_part(&object("1"), &(0..4), b"0123").unwrap();
        cache.add_part(&object("1"), &(0..5), b"01234").unwrap();
        assert_eq!(cache.part(&object("1"), &(0..4)).unwrap(), "0123");
        assert_eq!((cache.part(&object("1"), &(0..5)), list(dir.path()).unwrap().len()), (None, 1));
    }

    #[test]
    fn the_copies_of_the_owner_with_the_most_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let cache = open(dir.path(), 40);
        let quiet = object_of("b1", "1");
        cache.add(&quiet, &[0; 10]).unwrap();
        // One reads all of two applications, and displaces only copies of its own.
        let all = ["a1", "a2"].map(|app_id| ["1", "2", "3"].map(|name| object_of(app_id, name)));
        all.iter().flatten().for_each(|object| _ = cache.add(object, &[0; 10]).unwrap());
        assert!(cache.get(&quiet).is_some());
        let held = all.iter().flatten().map(|object| cache.get(object).is_some()).collect::<Vec<_>>();
        assert_eq!(held, [false, false, false, true, true, true]);
        // One that is larger than the rest displaces those of its owner first.
        let large = object_of("b1", "2");
        cache.add(&large, &[0; 35]).unwrap();
        assert!(cache.get(&large).is_some() && cache.get(&quiet).is_none());
        assert!(all.iter().flatten().all(|object| cache.get(object).is_none()));
        assert_eq!(cache.held().applications, HashMap::from([("b1".to_owned(), 35)]));
    }

    #[test]
    fn copies_are_bounded_and_those_used_last_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = open(dir.path(), 25);
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
        assert_eq!(held(&open(dir.path(), 25)), [true, false, true]);
        let smaller = open(dir.path(), 10);
        assert_eq!(held(&smaller).iter().filter(|is_held| **is_held).count(), 1);
        smaller.retain(|_| false).unwrap();
        assert_eq!((held(&smaller), list(dir.path()).unwrap().len()), ([false; 3], 0));
    }
}
