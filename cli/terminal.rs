//! Output, prompts, and text from others made safe to print.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, bail};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
pub(crate) use runtime::sanitize;
use runtime::sanitize_char;
use serde::Serialize;
use types::Secret;

/// Maximum number of bytes read from standard input at a prompt.
const INPUT_BYTES_MAX: u64 = 1 << 20;

/// Where a password comes from.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PasswordSource {
    /// Read the password from the first line of standard input instead of prompting for it
    #[arg(long)]
    pub(crate) password_stdin: bool,
}

/// Whether to ask before doing something that cannot be undone.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Prints a line to standard output. The error for a closed pipe ends the command silently.
pub(crate) fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{line}").context("cannot write to standard output")
}

/// Prints a table that fits the width of the terminal.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| sanitize(&cell)));
    }
    say(table.trim_fmt())
}

/// Prints a name and a value per line, without the empty values.
pub(crate) fn fields<const N: usize>(fields: [(&str, String); N]) -> anyhow::Result<()> {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    fields.into_iter().try_for_each(|(name, value)| say(format_args!("{name:>20}: {}", sanitize(&value))))
}

/// [`sanitize`] for text of several lines.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// `value` as JSON in one line, with the characters that [`sanitize`] would replace escaped instead.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut escaped = String::new();
    // Only string contents can have such characters.
    for character in serde_json::to_string(value)?.chars() {
        match sanitize_char(character) == character {
            true => escaped.push(character),
            false => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped += &format!("\\u{unit:04x}")),
        }
    }
    Ok(escaped)
}

/// Prompts for a password, or reads it from standard input.
pub(crate) fn ask_password(source: PasswordSource, question: &str) -> anyhow::Result<Secret> {
    if source.password_stdin {
        let mut line = String::new();
        io::stdin().lock().take(INPUT_BYTES_MAX).read_line(&mut line).context("cannot read the password")?;
        return Ok(Secret::new(line.trim_end_matches(['\r', '\n'])));
    }
    if !io::stdin().is_terminal() {
        bail!("cannot prompt for a password without a terminal: use --password-stdin");
    }
    Ok(Secret::new(rpassword::prompt_password(question).context("cannot read the password")?))
}

/// Prompts for a line and trims it; empty at the end of input.
pub(crate) fn ask(question: &str) -> anyhow::Result<String> {
    let mut out = io::stdout().lock();
    write!(out, "{question}").and_then(|()| out.flush()).context("cannot write to standard output")?;
    let mut line = String::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_line(&mut line).context("cannot read the answer")?;
    Ok(line.trim().to_owned())
}

/// Asks for confirmation unless it was given with `--yes`; an error for any answer but yes.
pub(crate) fn confirm(question: std::fmt::Arguments<'_>, confirmation: Confirmation) -> anyhow::Result<()> {
    if confirmation.yes {
        return Ok(());
    }
    match ask(&format!("{question} (yes/no) > "))?.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        "" if !can_ask() => bail!("nobody can answer here, so nothing was changed: use --yes to go on without asking"),
        _ => bail!("cancelled: nothing was changed"),
    }
}

/// Prompts for a new password, twice at a terminal, where it cannot be seen.
pub(crate) fn ask_new_password(source: PasswordSource, question: &str) -> anyhow::Result<Secret> {
    let password = ask_password(source, question)?;
    if !source.password_stdin && ask_password(source, "The same again: ")? != password {
        bail!("the passwords differ: try again");
    }
    Ok(password)
}

/// Whether standard input is a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_control_characters_only() {
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
