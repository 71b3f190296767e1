//! Scripts of third parties that pages load are those that were built from the pinned packages.

use std::{collections::BTreeMap, fs, path::Path};

use sha2::{Digest, Sha256};

const VENDOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/web/vendor");

#[test]
fn modules_of_third_parties_match_their_checksums() {
    for folder in fs::read_dir(VENDOR).unwrap().map(|entry| entry.unwrap().path()) {
        let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        let sums: BTreeMap<&str, &str> =
            sums.lines().map(|line| line.split_once("  ").unwrap()).map(|(sum, file)| (file, sum)).collect();
        let module = format!("{}.js", folder.file_name().unwrap().to_str().unwrap());
        assert!(sums.contains_key(&*module) && sums.contains_key("LICENSE"), "{sums:?} lacks {module}, or LICENSE");
        for (file, sum) in sums {
            assert_eq!(checksum(&folder.join(file)), sum, "{file} is not what {}/build.sh made", folder.display());
        }
    }
}

fn checksum(file: &Path) -> String {
    hex::encode(Sha256::digest(fs::read(file).unwrap()))
}
