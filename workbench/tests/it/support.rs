//! Shared parts of the tests of this crate.
use std::{
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use airlock_workbench::{self as workbench, Detail, Found, Rules, Totals};
use runtime::{Engine, Settings};
use tempfile::TempDir;

/// An engine with the default settings.
pub fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(&Settings::default()).unwrap())
}

/// The same for one that counts steps.
pub fn counting_engine() -> Arc<Engine> {
    Arc::new(Engine::profiling(&Settings::default()).unwrap())
}

/// A fixture's path.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// Finds and runs codecs; also returns the report for people.
pub fn test(paths: &[PathBuf]) -> (Found, Totals, String) {
    test_with(paths, Rules::default())
}

/// [`test`] with rules of comparison.
pub fn test_with(paths: &[PathBuf], rules: Rules) -> (Found, Totals, String) {
    let engine = engine();
    let found = workbench::find(paths, None, &engine);
    let mut text = String::new();
    let totals = workbench::run(&engine, &found.codecs, rules, 2, |report| {
        text += &report.text(Detail::Normal);
        Ok::<(), Infallible>(())
    });
    let Ok(totals) = totals;
    (found, totals, text)
}

/// A directory with files.
pub struct Dir(TempDir);

impl Dir {
    /// Writes `files`, each in the directory that its name tells.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(dir)
    }

    /// Replaces a file as editors do: a new one is put in its place.
    pub fn save(&self, name: &str, text: &str) {
        let new = self.0.path().join(format!("{name}~"));
        fs::write(&new, text).unwrap();
        fs::rename(new, self.0.path().join(name)).unwrap();
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}
