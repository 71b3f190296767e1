//! Reads function texts: from a file that somebody typed, or from one that a record names.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

use anyhow::Context;

/// Longest script in a file of its own, in bytes; what the sandbox accepts is less.
const SCRIPT_BYTES_MAX: u64 = 4 << 20;

/// Whether somebody who types `path` means standard input.
pub(crate) fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a script from the file that somebody typed; `-` is standard input.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    match is_input(path) {
        true => text(io::stdin()).context("cannot read standard input"),
        false => File::open(path).and_then(text).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Reads a script from a file in `folder` or below, and from no other: whoever wrote the record may be a stranger.
pub(crate) fn read_within(folder: &Path, name: &Path) -> io::Result<String> {
    let path = folder.join(name).canonicalize()?;
    if !path.starts_with(folder.canonicalize()?) {
        return Err(io::Error::other("it is outside the folder of the file that names it"));
    }
    // Asked before it is opened, because opening a pipe waits for whoever writes into it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    text(File::open(path)?)
}

fn text(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    file.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => io::Error::other("it is not UTF-8"),
        _ => error,
    })?;
    match text.len() as u64 > SCRIPT_BYTES_MAX {
        true => Err(io::Error::other(format!("it has more than {SCRIPT_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::symlink, net::UnixListener},
    };

    use super::*;

    #[test]
    fn records_read_regular_files_of_their_folder_and_nothing_else() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("codecs");
        fs::create_dir_all(folder.join("vendor")).unwrap();
        for name in ["codecs/near.js", "codecs/vendor/below.js", "secret.js"] {
            fs::write(outside.path().join(name), name).unwrap();
        }
        symlink("vendor/below.js", folder.join("inward.js")).unwrap();
        symlink("../secret.js", folder.join("outward.js")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        let _socket = UnixListener::bind(folder.join("socket.js")).unwrap();
        let absolute = outside.path().join("secret.js");
        for name in ["near.js", "./near.js", "vendor/below.js", "vendor/../near.js", "inward.js"] {
            assert!(read_within(&folder, Path::new(name)).unwrap().ends_with(".js"), "{name}");
        }
        for (name, reason) in [
            ("../secret.js", "outside the folder"),
            ("../../../../../../../../etc/passwd", "outside the folder"),
            ("outward.js", "outside the folder"),
            ("up/secret.js", "outside the folder"),
            (absolute.to_str().unwrap(), "outside the folder"),
            ("/dev/zero", "outside the folder"),
            ("socket.js", "not a regular file"),
            ("vendor", "not a regular file"),
            (".", "not a regular file"),
            ("missing.js", "No such file"),
        ] {
            let error = read_within(&folder, Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
    }

    #[test]
    fn scripts_are_utf_8_and_have_a_largest_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.js");
        for (length, reason) in
            [(SCRIPT_BYTES_MAX, None), (SCRIPT_BYTES_MAX + 1, Some("it has more than 4194304 bytes"))]
        {
            fs::write(&path, vec![b' '; length as usize]).unwrap();
            assert_eq!(read(&path).err().map(|error| error.root_cause().to_string()).as_deref(), reason);
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&path).unwrap_err().root_cause().to_string(), "it is not UTF-8");
    }
}
