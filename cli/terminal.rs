//! Talking to people: results on standard output, questions on the terminal, text from others shown inert.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, bail};
use comfy_table::{ContentArrangement, Table, presets};
pub(crate) use runtime::inert;
use types::Secret;

use crate::args::Password;

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

/// Reads standard input to its end, as text of at most 1 MiB.
pub(crate) fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("cannot read standard input as text")?;
    Ok(text)
}
