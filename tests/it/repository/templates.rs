//! Templates of pages share their parts.

use std::{fs, path::Path};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The only templates with a table of their own, for sites and for reports: all others call their macros.
const PARTS: [&str; 2] = ["parts.html", "report_parts.html"];
const FOLDERS: [&str; 5] =
    ["account/templates", "cli/templates", "console/templates", "web/templates", "workbench/templates"];

#[test]
fn tables_of_pages_come_from_the_macros() {
    let (mut tables, mut calls) = (Vec::new(), 0);
    for folder in FOLDERS {
        for template in fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let html = fs::read_to_string(&template).unwrap();
            calls += html.matches("table(\"").count();
            if html.contains("<table") {
                tables.push(template.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    tables.sort();
    assert_eq!(tables, PARTS);
    assert!(calls > 20, "only {calls} tables are found");
}
