//! The files that somebody has opened in the page.

use std::{
    ffi::OsString,
    io::{self, Cursor, ErrorKind, Read},
    path::{Component, Path},
};

use runtime::ask_page;
use serde::{Deserialize, Serialize};

use crate::file::{Entry, Files, normal};

/// The tree of the page. Paths in it start with nothing or `.`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFiles;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Request<'a> {
    Entries { directory: &'a str },
    Read { file: &'a str },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Reply {
    Entries(Vec<NamedEntry>),
    /// A file in UTF-8, with the byte order mark that it may have.
    Text(String),
    /// Any other file, in hexadecimal.
    Bytes(String),
    /// There is no such file or directory.
    Missing,
    Problem(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedEntry {
    name: String,
    is_dir: bool,
}

impl Files for PageFiles {
    fn entries(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let directory = way(dir, dir)?;
        let named = |NamedEntry { name, is_dir }| Entry { name: OsString::from(name), is_dir };
        match ask_page(&Request::Entries { directory: &directory }) {
            Some(Reply::Entries(entries)) => Ok(entries.into_iter().map(named).collect()),
            reply => Err(refused(reply)),
        }
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.entries(path).is_ok()
    }

    fn open_within(&self, directory: &Path, name: &Path) -> io::Result<Box<dyn Read>> {
        self.bytes(directory, &directory.join(name)).map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read>)
    }
}

impl PageFiles {
    /// The text of a file in UTF-8, as it is.
    pub(crate) fn text(self, file: &Path) -> io::Result<String> {
        let bytes = self.bytes(Path::new(""), file)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
    }

    fn bytes(self, directory: &Path, path: &Path) -> io::Result<Vec<u8>> {
        let file = way(directory, path)?;
        match ask_page(&Request::Read { file: &file }) {
            Some(Reply::Text(text)) => Ok(text.into_bytes()),
            Some(Reply::Bytes(digits)) => hex::decode(digits).map_err(io::Error::other),
            reply => Err(refused(reply)),
        }
    }
}

/// The way from the top of the tree to `path`, which must be in `directory` or below.
fn way(directory: &Path, path: &Path) -> io::Result<String> {
    let path = normal(path);
    let is_way = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_inside = is_way && path.starts_with(normal(directory));
    let way = path.to_str().filter(|_| is_inside).map(str::to_owned);
    way.ok_or_else(|| io::Error::other("it is outside the directory of the file that names it"))
}

fn refused(reply: Option<Reply>) -> io::Error {
    match reply {
        Some(Reply::Missing) => io::Error::new(ErrorKind::NotFound, "there is no such file"),
        Some(Reply::Problem(reason)) => io::Error::other(reason),
        _ => io::Error::other("the page has not answered as expected"),
    }
}
