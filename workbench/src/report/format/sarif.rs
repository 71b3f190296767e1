//! Reports in SARIF 2.1.0, which code scanning shows beside the lines.

use runtime::sanitize;
use serde_json::{Value, json};

use crate::{
    layout::BadInput,
    report::{CodecReport, ExampleOutcome, reporter::Reporter, totals::Totals},
};

/// Maximum number of results that code scanning accepts in one run.
const RESULTS_MAX: usize = 25_000;

#[derive(Default)]
pub(crate) struct Sarif {
    results: Vec<Value>,
}

impl Sarif {
    /// Adds a result of a level: `error`, `warning` or `note`.
    pub(crate) fn push(&mut self, (rule, level): (&str, &str), message: &str, site: Option<(String, usize)>) {
        if self.results.len() >= RESULTS_MAX {
            return;
        }
        let mut result = json!({"ruleId": rule, "level": level, "message": {"text": lines(message)}});
        if let Some((file, line)) = site {
            let location = json!({
                "physicalLocation": {"artifactLocation": {"uri": uri(&file)}, "region": {"startLine": line.max(1)}}
            });
            result["locations"] = json!([location]);
        }
        self.results.push(result);
    }

    /// The document, with `rules` and what each of them says. `problems` are files and lines that could not be read.
    pub(crate) fn document(&mut self, rules: &[(&str, &str)], problems: &[BadInput]) -> String {
        for problem in problems {
            let site = problem.place().map(|(file, line)| (file.to_owned(), line as usize));
            self.push(("bad-input", "error"), &problem.describe(), site);
        }
        let bad_input = ("bad-input", "A file with examples cannot be read");
        let rule = |(id, text): &(&str, &str)| json!({"id": id, "shortDescription": {"text": text}});
        let rules: Vec<Value> = rules.iter().chain([&bad_input]).map(rule).collect();
        let driver = json!({"name": "airlock", "version": env!("CARGO_PKG_VERSION"), "rules": rules});
        let report = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": std::mem::take(&mut self.results)}],
        });
        format!("{report:#}\n")
    }
}

impl Reporter for Sarif {
    fn codec(&mut self, report: &CodecReport) -> String {
        let id = sanitize(&report.id);
        if let Some(failure) = &report.failure {
            let file = report.file.as_ref().map(|file| file.display().to_string());
            let site = file.map(|file| (file, report.failure_line.unwrap_or(1) as usize));
            self.push(("cannot-load", "error"), &format!("{id}: {failure}"), site);
            return String::new();
        }
        for example in &report.examples {
            if let ExampleOutcome::Failed(mismatch) = &example.outcome {
                let text = format!("{id}, {}: {}", example.title(), mismatch.lines().join("\n"));
                self.push(("unexpected-result", "error"), &text, example.site(report));
            }
        }
        String::new()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        for script in totals.scripts() {
            let missed = script.missed();
            if !missed.is_empty() {
                let text = format!("{}: {}", script.percents(), missed.join("; "));
                self.push(("not-covered", "note"), &text, script.site());
            }
        }
        if let Some(lack) = totals.lack_of_coverage() {
            self.push(("too-little-covered", "error"), &lack, None);
        }
        let rules = [
            ("unexpected-result", "A payload function does not return what its example states"),
            ("cannot-load", "A payload function cannot be loaded"),
            ("not-covered", "No example reaches these lines or branches"),
            ("too-little-covered", "Examples reach fewer lines or branches than they must"),
        ];
        self.document(&rules, problems)
    }
}

fn lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let path = path.strip_prefix("./").unwrap_or(path);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
