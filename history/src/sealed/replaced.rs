//! Files that were merged into another: a list beside the new file, written before it has its name, hides them until
//! they are deleted, also if the process is killed in between.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    Error,
    directory::{if_there, remove},
    sealed::write::FILE_EXTENSION,
};

/// Extension of the names of lists.
const EXTENSION: &str = "replaces";

/// The list of what a file replaces.
fn list_of(path: &Path) -> PathBuf {
    path.with_extension(EXTENSION)
}

/// Writes which files in the same directory a new file replaces.
pub(crate) fn write(path: &Path, replaced: &[PathBuf]) -> Result<(), Error> {
    let names = replaced.iter().filter_map(|path| path.file_name()?.to_str());
    let text = names.collect::<Vec<_>>().join("\n");
    let list = list_of(path);
    let write = |mut file: File| file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    File::create(&list).and_then(write).map_err(Error::file("write", &list))
}

/// Returns those of the paths in a directory that are replaced by others of them. A new file that got its name after
/// they were listed hides none: its records would be missing.
pub(crate) fn hidden(paths: &[PathBuf]) -> HashSet<PathBuf> {
    let lists = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    // If one cannot be read, what it hides has the same records as the new file.
    lists.filter(|list| paths.contains(&file_of(list))).flat_map(|list| read(list).unwrap_or_default()).collect()
}

/// Deletes files that were replaced, and then the list.
pub(crate) fn delete(path: &Path) -> Result<(), Error> {
    settle(&list_of(path))
}

/// Ends what a killed process has begun: deletes what was replaced, or forgets it if the new file never had its name.
pub(crate) fn settle_all(paths: &[PathBuf]) -> Result<(), Error> {
    let mut lists = paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    lists.try_for_each(|list| settle(list))
}

fn settle(list: &Path) -> Result<(), Error> {
    if file_of(list).exists() {
        // Without the list, nobody would know what is to be deleted.
        if_there(read(list))?.iter().try_for_each(|path| remove(path))?;
    }
    remove(list)
}

fn file_of(list: &Path) -> PathBuf {
    list.with_extension(FILE_EXTENSION)
}

fn read(list: &Path) -> Result<Vec<PathBuf>, Error> {
    let dir = list.parent().unwrap_or(Path::new(""));
    let names = fs::read(list).map_err(Error::file("read", list))?;
    let names = String::from_utf8_lossy(&names);
    // Only names: no list reaches outside its directory.
    Ok(names.lines().filter(|name| !name.contains('/')).map(|name| dir.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::list;

    #[test]
    fn files_are_hidden_by_one_that_was_listed_with_them_and_by_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new] = ["1-2-a.parquet", "1-2-b.parquet"].map(|name| dir.path().join(name));
        fs::write(&old, "").unwrap();
        write(&new, std::slice::from_ref(&old)).unwrap();
        let before = list(dir.path()).unwrap();
        fs::write(&new, "").unwrap();
        assert_eq!(hidden(&before), HashSet::new());
        assert_eq!(hidden(&list(dir.path()).unwrap()), HashSet::from([old]));
    }

    #[test]
    fn what_a_damaged_list_still_names_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new] = ["1-2-a.parquet", "1-2-b.parquet"].map(|name| dir.path().join(name));
        [&old, &new].iter().for_each(|path| fs::write(path, "").unwrap());
        fs::write(list_of(&new), b"1-2-\xff.parquet\n1-2-a.parquet").unwrap();
        settle_all(&list(dir.path()).unwrap()).unwrap();
        assert_eq!(list(dir.path()).unwrap(), [new]);
    }
}
