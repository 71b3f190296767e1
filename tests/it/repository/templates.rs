//! Templates of pages share their parts.

use std::{fs, path::Path};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The only template with a table of its own: all others call its macro.
const PARTS: &str = "parts.html";

#[test]
fn tables_of_pages_come_from_one_macro() {
    let (mut tables, mut calls) = (Vec::new(), 0);
    for folder in ["console/templates", "account/templates", "web/templates"] {
        for template in fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let html = fs::read_to_string(&template).unwrap();
            calls += html.matches("table(\"").count();
            if html.contains("<table") {
                tables.push(template.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    assert_eq!(tables, [PARTS]);
    assert!(calls > 20, "only {calls} tables are found");
}
