//! Output, prompts, and text from others made safe to print.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, bail};
use clap::Args;
use runtime::escape_json;
pub(crate) use runtime::sanitize;
use rustix::io::ioctl_fionread;
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

/// Confirmation before something that cannot be undone.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Prints a line to standard output. The error for a closed pipe ends the command silently. Emphasis is left out where
/// it is not shown: in a pipe, or when `NO_COLOR` is set.
pub(crate) fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(anstream::stdout().lock(), "{line}").context("cannot write to standard output")
}

/// Prints a line to standard error.
pub(crate) fn warn(line: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(anstream::stderr().lock(), "{line}").context("cannot write to standard error")
}

/// [`sanitize`] for text of several lines.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// `value` as JSON, on several indented lines if `pretty`, with the characters that [`sanitize`] would replace escaped
/// instead.
pub(crate) fn json_lines(value: &impl Serialize, pretty: bool) -> serde_json::Result<String> {
    let text = if pretty { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
    Ok(escape_json(&text))
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

/// Prompts for a line and trims it; empty at the end of input. The question is no result, so it goes to standard error.
pub(crate) fn ask(question: &str) -> anyhow::Result<String> {
    let mut out = io::stderr().lock();
    write!(out, "{question}").and_then(|()| out.flush()).context("cannot write to standard error")?;
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
        _ => bail!("cancelled, so nothing was changed: use --yes to go on without asking"),
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

/// Returns true if standard input is a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Returns true if lines that were typed at the terminal wait to be read.
pub(crate) fn has_typed_ahead() -> bool {
    ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
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
            let shown = json_lines(&text, false).unwrap();
            assert_eq!(shown, expected);
            assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
