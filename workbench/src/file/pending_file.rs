//! A file that is written as a whole: what was there before stays until then.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{directory_of, is_stdin};

/// A new file that is put in place once it is complete; `-` is standard output.
#[derive(Debug)]
pub struct PendingFile {
    /// The target of a link, so that the link stays.
    path: PathBuf,
    file: Kind,
}

#[derive(Debug)]
enum Kind {
    Whole(NamedTempFile),
    /// A pipe or a device, such as `/dev/stdout`, can only be written to.
    Stream(File),
    /// Standard output, which gets it in one piece, so that it is not mixed with what else is printed.
    Stdout(Vec<u8>),
}

impl PendingFile {
    /// Begins a file that is to be at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_stdin(path) {
            return Ok(Self { path: path.to_owned(), file: Kind::Stdout(Vec::new()) });
        }
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let file = match fs::metadata(&path) {
            Ok(metadata) if !metadata.is_file() => Kind::Stream(File::options().write(true).open(&path)?),
            // A file that is to be committed is readable for others, as far as it was before.
            before => {
                let mode = before.map_or(0o644, |it| it.permissions().mode());
                let mut options = File::options();
                options.read(true).write(true).create_new(true).mode(mode);
                // Not with `tempfile_in`, whose errors name a file that nobody knows.
                Kind::Whole(tempfile::Builder::new().make_in(directory_of(&path), |path| options.open(path))?)
            }
        };
        Ok(Self { path, file })
    }

    /// Puts it in place.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.file {
            Kind::Whole(file) => {
                // Otherwise a power failure could leave the name with a part of the content.
                file.as_file().sync_all()?;
                file.persist(self.path).map(drop).map_err(|error| error.error)
            }
            Kind::Stream(_) => Ok(()),
            Kind::Stdout(bytes) => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&bytes)?;
                stdout.flush()
            }
        }
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            // Not through `NamedTempFile`, whose errors name a file that nobody knows.
            Kind::Whole(file) => file.as_file_mut().write(bytes),
            Kind::Stream(file) => file.write(bytes),
            Kind::Stdout(written) => written.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Kind::Whole(file) => file.flush(),
            Kind::Stream(file) => file.flush(),
            Kind::Stdout(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn save(path: &Path, text: &str) -> io::Result<()> {
        let mut file = PendingFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    #[test]
    fn what_was_there_stays_until_the_new_file_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink("a", &link).unwrap();
        let mut file = PendingFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(file);
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), fs::read_dir(dir.path()).unwrap().count()),
            ("old", 2)
        );
        save(&link, "new").unwrap();
        assert!(fs::read_to_string(&path).unwrap() == "new" && link.is_symlink());
        save(Path::new("/dev/null"), "gone").unwrap();
        let error = save(&dir.path().join("no/such"), "").unwrap_err();
        assert!(!error.to_string().contains(".tmp") && save(dir.path(), "").is_err(), "{error}");
    }
}
