//! The line of an import that the guest refuses: it links modules without knowing where they are named.

use super::failure::Failure;
use super::sources::Sources;

/// The guest's text before the name of a module, and after it.
const BEFORE: &str = "cannot import '";
const AFTER: &str = "': only 'buffer' can be imported";

/// The failure with its line, if it is a refused import of one of these sources.
pub(crate) fn locate(failure: Failure, sources: &Sources) -> Failure {
    if failure.line.is_some() {
        return failure;
    }
    let named = failure.message.split_once(BEFORE).and_then(|(_, rest)| rest.split_once(AFTER));
    let text = sources.text(failure.slot);
    let line = named.and_then(|(name, _)| text.lines().position(|line| imports(line, name)));
    Failure { line: line.and_then(|line| u32::try_from(line + 1).ok()), ..failure }
}

/// Returns true if a line names the module behind `from` or `import`.
fn imports(line: &str, name: &str) -> bool {
    let is_import = |(place, _): (usize, &str)| {
        let before = line[..place].strip_suffix(['\'', '"']).unwrap_or_default().trim_end();
        (before.ends_with("from") || before.ends_with("import")) && !before.trim_start().starts_with("//")
    };
    let is_quoted = |(place, _): &(usize, &str)| line[place + name.len()..].starts_with(['\'', '"']);
    line.match_indices(name).filter(is_quoted).any(is_import)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::wire::{FailureKind, Slot};

    fn line(name: &str, text: &str) -> Option<u32> {
        let message = format!("SyntaxError: {BEFORE}{name}{AFTER}");
        locate(Failure::new(Slot::Decoder, FailureKind::Syntax, message), &Sources::single_file(text)).line
    }

    #[test]
    fn finds_the_line_that_names_the_module() {
        for (text, expected) in [
            ("import fs from 'fs';", Some(1)),
            ("// import fs from 'fs';\nlet fs = 'fs';\nimport {\n  x\n} from \"fs\";", Some(5)),
            ("import 'buffer';\nimport\t'fs'", Some(2)),
            ("import 'fs-extra';\n\nexport * from'fs'", Some(3)),
            ("import x from 'f\\u0073'", None),
        ] {
            assert_eq!(line("fs", text), expected, "{text}");
        }
        let other = Failure::new(Slot::Decoder, FailureKind::Syntax, "expecting ';'");
        assert_eq!(locate(other, &Sources::single_file("import 'fs'")).line, None);
    }
}
