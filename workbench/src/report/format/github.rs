//! Reports as annotations of GitHub Actions, which appear beside the lines of a pull request.

use runtime::sanitize;

use crate::{
    layout::BadInput,
    report::{CodecReport, ExampleOutcome, coverage::ScriptCoverage, reporter::Reporter, totals::Totals},
};

pub(super) struct Github;

impl Reporter for Github {
    fn codec(&mut self, report: &CodecReport) -> String {
        if let Some(failure) = &report.failure {
            let file = report.file.as_ref().map(|file| file.display().to_string());
            let site = file.map(|file| (file, report.failure_line.unwrap_or(1) as usize));
            return annotation(&format!("{} cannot be loaded", report.id), failure, site);
        }
        let failed = report.examples.iter().filter_map(|example| match &example.outcome {
            ExampleOutcome::Failed(mismatch) => {
                let title = format!("{}, {}", report.id, example.title());
                Some(annotation(&title, &mismatch.lines().join("\n"), example.site(report)))
            }
            _ => None,
        });
        failed.collect()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let lack = totals.lack_of_coverage().map(|lack| annotation("Too little is tested", &lack, None));
        let missed: String = totals.scripts().iter().map(missed).collect();
        format!("{}{missed}{}{totals}\n", bad_input(problems), lack.unwrap_or_default())
    }
}

/// An annotation of what no example reaches of a script, if anything.
fn missed(script: &ScriptCoverage) -> String {
    let missed = script.missed();
    match missed.is_empty() {
        true => String::new(),
        false => annotation_of("notice", &script.percents(), &missed.join("\n"), script.site()),
    }
}

/// Annotations of files and lines that could not be read.
pub(crate) fn bad_input(problems: &[BadInput]) -> String {
    let bad = problems.iter().map(|problem| {
        let site = problem.place().map(|(file, line)| (file.to_owned(), line as usize));
        annotation("Not valid", &problem.describe(), site)
    });
    bad.collect()
}

fn annotation(title: &str, message: &str, site: Option<(String, usize)>) -> String {
    annotation_of("error", title, message, site)
}

/// An annotation of a level: `error`, `warning` or `notice`.
pub(crate) fn annotation_of(level: &str, title: &str, message: &str, site: Option<(String, usize)>) -> String {
    // GitHub takes a path only from the top of the repository, without `./` before it.
    let file = |file: &str| property(file.trim_start_matches("./"));
    let site = site.map(|(path, line)| format!("file={},line={line},", file(&path))).unwrap_or_default();
    let message = message.lines().map(|line| data(&sanitize(line))).collect::<Vec<_>>().join("%0A");
    format!("::{level} {site}title={}::{message}\n", property(&sanitize(title)))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_from_the_top_of_the_repository() {
        for file in ["a/b,c.js", "./a/b,c.js"] {
            let line = annotation("title", "50%\nmore", Some((file.to_owned(), 3)));
            assert_eq!(line, "::error file=a/b%2Cc.js,line=3,title=title::50%25%0Amore\n");
        }
    }
}
