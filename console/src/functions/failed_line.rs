//! The line of a function at which it failed, as failures name it.

use api::handler::Application;
use server::audit::visible;

/// The functions that failures name as such. A failure of any other is one of the decoder.
const OTHERS: [&str; 3] = ["converter", "validator", "encoder"];

/// A line of a function at which it failed, or for which it cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedLine {
    /// The function, as its field in forms is called.
    pub(crate) function: &'static str,
    /// From 1.
    pub(crate) number: usize,
    /// The failure on one line, without characters that nobody sees or that change the direction of text.
    pub(crate) message: String,
}

impl FailedLine {
    /// The line that a failure names: `the decoder failed (line 3, column 5): …`.
    pub(crate) fn of(failure: &str) -> Option<Self> {
        let (subject, rest) = failure.split_once("(line ")?;
        let (place, message) = rest.split_once(')')?;
        let number = place.split(',').next()?.parse().ok()?;
        let function = OTHERS.into_iter().find(|name| subject.contains(&format!("he {name} "))).unwrap_or("decoder");
        // Without a message behind the place, there is a predicate before it.
        let message = message.strip_prefix(": ").unwrap_or(failure).lines().next().unwrap_or_default();
        Some(Self { function, number, message: visible(message).into_owned() })
    }

    /// The source that has the line.
    pub(crate) fn source<'a>(&self, functions: &'a Application) -> &'a str {
        match self.function {
            "converter" => &functions.converter,
            "validator" => &functions.validator,
            "encoder" => &functions.encoder,
            _ => &functions.decoder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(failure: &str) -> (&'static str, usize, String) {
        let FailedLine { function, number, message } = FailedLine::of(failure).unwrap();
        (function, number, message)
    }

    #[test]
    fn a_failure_names_its_line_and_its_function() {
        assert_eq!(
            of("the decoder failed (line 3, column 5): Error: x (line 9)"),
            ("decoder", 3, "Error: x (line 9)".to_owned())
        );
        assert_eq!(of("the converter failed (line 12): Error"), ("converter", 12, "Error".to_owned()));
        assert_eq!(of("The encoder cannot be loaded (line 1): no\n1 | x\n").2, "no");
        let fuel = "the decoder used up its fuel (line 2)";
        assert_eq!(of(fuel), ("decoder", 2, fuel.to_owned()));
        assert_eq!(of("the decoder failed (line 2): Error: \u{202e}x").2, r"Error: \u202ex");
        assert_eq!(FailedLine::of("the decoder ran out of fuel"), None);
    }

    #[test]
    fn a_line_is_in_the_source_of_its_function() {
        let functions = Application { decoder: "d".into(), converter: "c".into(), ..Application::default() };
        let source = |failure| FailedLine::of(failure).unwrap().source(&functions).to_owned();
        assert_eq!(source("the converter failed (line 1): x"), "c");
        assert_eq!(source("`normalizeUplink` failed (line 1): x"), "d");
    }
}
