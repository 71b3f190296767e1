//! The page that runs codecs in a browser: its files, which are compiled into the program, and what it asks for when it
//! starts.

mod file;

use axum::{Router, body::Bytes, http::HeaderMap, routing::get};
use runtime::Limits;
use serde::Serialize;

use self::file::File;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const WASM: &str = "application/wasm";

macro_rules! files {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        /// The files of `web/playground`, by their names there.
        const FILES: &[(&str, &str, &[u8])] =
            &[$(($name, $kind, include_bytes!(concat!("../web/playground/", $name)))),+];
    };
}

files! {
    "index.html": HTML,
    "playground.css": STYLE,
    "playground.js": SCRIPT,
    "worker.js": SCRIPT,
    "runner.js": SCRIPT,
    "messages.js": SCRIPT,
    "network_message.js": SCRIPT,
    "payload.js": SCRIPT,
    "byte_map.js": SCRIPT,
    "link.js": SCRIPT,
    "sample.js": SCRIPT,
    "folder/folder.js": SCRIPT,
    "folder/pick.js": SCRIPT,
    "folder/save.js": SCRIPT,
    "folder/zip.js": SCRIPT,
    "profile/instrument.js": SCRIPT,
    "profile/operators.js": SCRIPT,
    "profile/profiler.js": SCRIPT,
    "profile/recorder.js": SCRIPT,
    "profile/steps.js": SCRIPT,
    "view/bytes.js": SCRIPT,
    "view/codecs.js": SCRIPT,
    "view/costs.js": SCRIPT,
    "view/downlink.js": SCRIPT,
    "view/element.js": SCRIPT,
    "view/examples.js": SCRIPT,
    "view/failure.js": SCRIPT,
    "view/folder.js": SCRIPT,
    "view/fuzz.js": SCRIPT,
    "view/networks.js": SCRIPT,
    "view/result.js": SCRIPT,
    "view/rows.js": SCRIPT,
    "view/tabs.js": SCRIPT,
    "view/tested.js": SCRIPT,
    "sandbox/failure.js": SCRIPT,
    "sandbox/guest.js": SCRIPT,
    "sandbox/instance.js": SCRIPT,
    "sandbox/module.js": SCRIPT,
    "sandbox/reply.js": SCRIPT,
    "sandbox/request.js": SCRIPT,
    "sandbox/sandbox.js": SCRIPT,
    "sandbox/shape.js": SCRIPT,
    "sandbox/wire.js": SCRIPT,
    "workbench/host.js": SCRIPT,
    "workbench/module.js": SCRIPT,
    "workbench/tree.js": SCRIPT,
    "workbench/workbench.js": SCRIPT,
    "workbench/worker.js": SCRIPT,
}

/// Files that the page shares with others. The pages of the console also load the editor from here.
const SHARED: [(&str, &str, &[u8]); 9] = [
    ("editor/code_editor.js", SCRIPT, include_bytes!("../web/editor/code_editor.js")),
    ("editor/costs.js", SCRIPT, include_bytes!("../web/editor/costs.js")),
    ("editor/look.js", SCRIPT, include_bytes!("../web/editor/look.js")),
    ("editor/notes.js", SCRIPT, include_bytes!("../web/editor/notes.js")),
    ("vendor/codemirror/codemirror.js", SCRIPT, include_bytes!("../web/vendor/codemirror/codemirror.js")),
    ("site.css", STYLE, include_bytes!("../web/site.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../web/icon.svg")),
    ("codecs.yml", YAML, include_bytes!("../workbench/src/layout/template/codecs.yml")),
    ("workbench.wasm", WASM, include_bytes!("../workbench/browser.wasm")),
];

/// The page at `below` and a slash, with the limits of this server's sandboxes and the opened codec: `null` without one.
pub(crate) fn router(below: &str, limits: &Limits, opened: Option<&impl Serialize>) -> serde_json::Result<Router> {
    let made = [
        ("limits.json", JSON, Bytes::from(serde_json::to_vec(limits)?)),
        ("opened.json", JSON, Bytes::from(serde_json::to_vec(&opened)?)),
        ("guest.wasm", WASM, Bytes::from_static(runtime::GUEST)),
    ];
    let files = FILES.iter().chain(&SHARED).map(|(name, kind, content)| (*name, *kind, Bytes::from_static(content)));
    let all = files.chain(made).fold(Router::new(), |router, (name, kind, content)| {
        let file = File::new(kind, content);
        let path = if name == "index.html" { format!("{below}/") } else { format!("{below}/{name}") };
        router.route(&path, get(async move |headers: HeaderMap| file.answer(&headers)))
    });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use sha2::{Digest, Sha256};

    use super::*;

    fn names(dir: &Path, before: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let name = format!("{before}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => names(&entry.path(), &format!("{name}/"), found),
                false => _ = found.insert(name),
            }
        }
    }

    fn web() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("web")
    }

    #[test]
    fn every_file_of_the_page_and_of_the_editor_is_served() {
        let (mut page, mut editor) = (BTreeSet::new(), BTreeSet::new());
        names(&web().join("playground"), "", &mut page);
        page.retain(|name| !name.ends_with(".md"));
        assert_eq!(page, FILES.iter().map(|(name, ..)| (*name).to_owned()).collect());
        names(&web().join("editor"), "editor/", &mut editor);
        let served = SHARED.iter().map(|(name, ..)| *name).filter(|name| name.starts_with("editor/"));
        assert_eq!(editor, served.map(str::to_owned).collect());
    }

    #[test]
    fn the_bundle_of_codemirror_is_what_its_sums_say() {
        let dir = web().join("vendor/codemirror");
        let sums = fs::read_to_string(dir.join("SHA256SUMS")).unwrap();
        let sums: Vec<_> = sums.lines().map(|line| line.split_once("  ").unwrap()).collect();
        assert_eq!(sums.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["codemirror.js", "LICENSE"]);
        for (sum, name) in sums {
            assert_eq!(sum, hex::encode(Sha256::digest(fs::read(dir.join(name)).unwrap())), "{name}");
        }
    }
}
