//! Talking to people: results on standard output, questions on the terminal, text from others shown inert.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, bail};
use comfy_table::{ContentArrangement, Table, presets};
pub(crate) use runtime::inert;
use runtime::inert_character;
use serde::Serialize;
use types::Secret;

use crate::commands::{applications::args::Sure, user::args::Password};

/// The most bytes that are read from standard input.
const INPUT_BYTES_MAX: u64 = 1 << 20;

/// Prints a line to standard output; a reader that went away ends the command, quietly.
pub(crate) fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{line}").context("cannot write to standard output")
}

/// Prints rows under a header, as wide as the terminal allows.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| inert(&cell)));
    }
    say(table.trim_fmt())
}

/// Prints names and values below each other; what is empty is left out.
pub(crate) fn fields<const N: usize>(fields: [(&str, String); N]) -> anyhow::Result<()> {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    fields.into_iter().try_for_each(|(name, value)| say(format_args!("{name:>20}: {}", inert(&value))))
}

/// The same as [`inert`] for text that may have several lines.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(inert).collect::<Vec<_>>().join("\n")
}

/// `value` as JSON in one line, with everything escaped that [`inert`] would replace.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut escaped = String::new();
    // Outside of strings there is nothing that has to be escaped.
    for character in serde_json::to_string(value)?.chars() {
        match inert_character(character) == character {
            true => escaped.push(character),
            false => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}")),
        }
    }
    Ok(escaped)
}

/// Asks for a password, or reads it from standard input when told so.
pub(crate) fn password(from: Password, question: &str) -> anyhow::Result<Secret> {
    if from.password_stdin {
        let mut line = String::new();
        io::stdin().lock().take(INPUT_BYTES_MAX).read_line(&mut line).context("cannot read the password")?;
        return Ok(Secret::new(line.trim_end_matches(['\r', '\n'])));
    }
    if !io::stdin().is_terminal() {
        bail!("cannot ask for a password here: give it with --password-stdin");
    }
    Ok(Secret::new(rpassword::prompt_password(question).context("cannot read the password")?))
}

/// Asks something, and gives the line that was typed, without the blanks around it; empty when there is none.
pub(crate) fn ask(question: &str) -> anyhow::Result<String> {
    let mut out = io::stdout().lock();
    write!(out, "{question}").and_then(|()| out.flush()).context("cannot write to standard output")?;
    let mut line = String::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_line(&mut line).context("cannot read the answer")?;
    Ok(line.trim().to_owned())
}

/// Asks whether to do what cannot be taken back, unless that is said already; anything but yes means no.
pub(crate) fn confirm(question: std::fmt::Arguments<'_>, sure: Sure) -> anyhow::Result<bool> {
    if sure.yes || matches!(ask(&format!("{question} (yes/no) > "))?.to_lowercase().as_str(), "y" | "yes") {
        return Ok(true);
    }
    say("Not doing anything")?;
    Ok(false)
}

/// Whether somebody sits there who can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_could_steer_a_terminal_and_nothing_else() {
        for (text, expected) in [
            ("21.5 °C, 温度 👍 \\u202e", r#""21.5 °C, 温度 👍 \\u202e""#),
            ("a\u{9b}2J\u{202e}\u{7f}\u{ad}", r#""a\u009b2J\u202e\u007f\u00ad""#),
            ("\u{e0100}\u{1b}\n\t", r#""\udb40\udd00\u001b\n\t""#),
        ] {
            let shown = json(&text).unwrap();
            assert_eq!(shown, expected);
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
