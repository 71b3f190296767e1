//! Scripts of third parties that pages load are those that were built from the pinned packages.

use std::{collections::BTreeMap, fs, path::Path};

use sha2::{Digest, Sha256};

const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/web");

#[test]
fn modules_of_third_parties_match_their_checksums() {
    for folder in fs::read_dir(Path::new(WEB).join("vendor")).unwrap().map(|entry| entry.unwrap().path()) {
        let module = format!("{}.js", folder.file_name().unwrap().to_str().unwrap());
        check(&folder, [&module, "LICENSE"]);
    }
}

#[test]
fn coastlines_match_their_checksums() {
    check(&Path::new(WEB).join("land"), ["land.txt", "LICENSE"]);
}

/// Compares all files that have a checksum, which these must have.
fn check(folder: &Path, files: [&str; 2]) {
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let sums: BTreeMap<&str, &str> =
        sums.lines().map(|line| line.split_once("  ").unwrap()).map(|(sum, file)| (file, sum)).collect();
    assert!(files.iter().all(|file| sums.contains_key(file)), "{sums:?} lacks one of {files:?}");
    for (file, sum) in sums {
        assert_eq!(checksum(&folder.join(file)), sum, "{file} is not what was made for {}", folder.display());
    }
}

fn checksum(file: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(file).unwrap()))
}
