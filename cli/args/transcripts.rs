//! Tests that transcripts and documents match the command line: every command and option is in a transcript, and
//! every command of a document parses.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Command, CommandFactory, Parser, parser::ValueSource};

use super::Args;

const TRANSCRIPTS: &str = "tests/it/commands/transcripts";

/// Commands and options that no transcript can show; what begins with one of these goes with it.
const NOT_IN_TRANSCRIPTS: &[(&str, &str)] = &[
    ("bridge", "needs a network: tests/it/networks/bridge.rs"),
    ("demo --chirpstack", "needs a broker: tests/it/processes/demo.rs"),
    ("functions serve", "runs until it is stopped: tests/it/workbench/codecs.rs"),
    ("functions watch", "runs until it is stopped: workbench/tests/it/files/watch.rs"),
    ("playground", "runs until it is stopped: tests/it/playground.rs"),
    ("serve", "runs until it is stopped: tests/it/processes/serve.rs"),
];

/// Commands of documents that no transcript has: they run until they are stopped, take long, or need what only their
/// reader has. Those of the workbench have tests of their own, with files for them.
const NOT_RUN: &[&str] = &[
    "airlock bridge ",
    "airlock functions bench decoder.js --",
    "airlock functions fuzz",
    "airlock functions lint path/to",
    "airlock functions serve",
    "airlock functions test path/to",
    "airlock functions test tests/fixtures",
    "airlock functions watch",
    "airlock playground",
    "airlock replay --from https://",
    "airlock replay --from postgres://replay@",
    "airlock replay --from redis://reader@",
    "airlock replay --from week.parquet",
    "airlock serve",
    "airlock subscribe",
    "sudo ",
];

/// Every command, option and argument, such as `devices info`, `devices info --format` and `devices info <dev_id>`.
fn all(command: &Command, name: &str, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        found.insert(name_of(argument, name));
    }
    for subcommand in command.get_subcommands() {
        let name = format!("{name} {}", subcommand.get_name()).trim().to_owned();
        all(subcommand, &name, found);
        found.insert(name);
    }
}

/// Options that all subcommands share have one name.
fn name_of(argument: &clap::Arg, command: &str) -> String {
    let option = argument.get_long().map_or_else(|| format!("<{}>", argument.get_id()), |long| format!("--{long}"));
    if argument.is_global_set() { option } else { format!("{command} {option}").trim().to_owned() }
}

/// Those that were typed.
fn typed(command: &Command, matches: &ArgMatches, name: &str, found: &mut BTreeSet<String>) {
    let given = |argument: &&clap::Arg| {
        let source = matches.try_contains_id(argument.get_id().as_str()).is_ok();
        source && matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    found.extend(command.get_arguments().filter(given).map(|argument| name_of(argument, name)));
    if let Some((subcommand, matches)) = matches.subcommand() {
        let name = format!("{name} {subcommand}").trim().to_owned();
        if let Some(subcommand) = command.find_subcommand(subcommand) {
            typed(subcommand, matches, &name, found);
        }
        found.insert(name);
    }
}

/// The commands of this program in a line of a shell, as words.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    // What another command prints does not matter here.
    let mut line = line.to_owned();
    while let Some(begin) = line.find("$(") {
        let end = line[begin..].find(')').map_or(line.len(), |end| begin + end + 1);
        line.replace_range(begin..end, "printed.text");
    }
    let words = shlex::split(&line).unwrap_or_default();
    let parts = words.split(|word| matches!(word.as_str(), "|" | "||" | "&&" | ";"));
    let without_prefix = |part: &[String]| {
        let mut part = part;
        if let [sudo, user, _, rest @ ..] = part
            && sudo == "sudo"
            && user == "-u"
        {
            part = rest;
        }
        part.to_vec()
    };
    // What follows is for the shell.
    let is_shell = |word: &str| word.starts_with(['>', '<']) || word.starts_with("2>");
    parts
        .map(without_prefix)
        .filter(|part| part.first().is_some_and(|word| word == "airlock"))
        .map(|part| part.into_iter().take_while(|word| !is_shell(word)).collect())
        .collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The lines of fenced blocks in one of these languages; lines that end with `\` are joined with the next.
fn code(path: &Path, languages: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap().replace("\\\n", " ");
    let (mut language, mut lines) = (None, Vec::new());
    for line in text.lines() {
        match (line.trim().strip_prefix("```"), language) {
            (Some(name), None) => language = Some(name),
            (Some(_), Some(_)) => language = None,
            (None, Some(name)) if languages.contains(&name) => lines.push(line.trim().to_owned()),
            _ => {}
        }
    }
    lines
}

/// The commands of a transcript, and of each the lines that continue it.
fn transcript(path: &Path) -> Vec<Vec<String>> {
    let lines = code(path, &["console"]);
    let typed = lines.iter().filter_map(|line| line.strip_prefix("$ ").or_else(|| line.strip_prefix("> ")));
    typed.flat_map(commands).collect()
}

/// Every command and option that a transcript shows.
fn shown(command: &Command, path: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for words in transcript(path) {
        // A transcript may show a mistake.
        if let Ok(matches) = command.clone().try_get_matches_from(words) {
            typed(command, &matches, "", &mut found);
        }
    }
    found
}

fn exception(name: &str) -> bool {
    NOT_IN_TRANSCRIPTS.iter().any(|(prefix, _)| name.starts_with(prefix))
}

/// The lines of documents with commands of this program, and the documents.
fn documented() -> BTreeMap<String, PathBuf> {
    let mut lines = BTreeMap::new();
    for path in files("docs").into_iter().chain(files(".")) {
        let has_command = |line: &String| !commands(line).is_empty();
        lines.extend(
            code(&path, &["sh", "console", ""]).into_iter().filter(has_command).map(|line| (line, path.clone())),
        );
    }
    lines
}

// Conformance: Every command does what its transcript shows
#[test]
fn every_command_and_option_is_in_a_transcript() {
    let (command, mut expected) = (Args::command(), BTreeSet::new());
    all(&command, "", &mut expected);
    let found: BTreeSet<_> = files(TRANSCRIPTS).iter().flat_map(|path| shown(&command, path)).collect();
    let missing: Vec<_> = expected.difference(&found).filter(|name| !exception(name)).collect();
    assert!(missing.is_empty(), "in no transcript: {missing:#?}");
    for (prefix, reason) in NOT_IN_TRANSCRIPTS {
        let covered = expected.difference(&found).any(|name| name.starts_with(prefix));
        assert!(covered, "{prefix}: no exception is needed ({reason})");
    }
}

// Conformance: Every command does what its transcript shows
#[test]
fn the_conformance_table_names_the_transcript_of_every_command_and_option() {
    let (command, mut expected, mut rows) = (Args::command(), BTreeSet::new(), BTreeSet::new());
    all(&command, "", &mut expected);
    expected.retain(|name| !name.ends_with('>'));
    for row in include_str!("../../docs/conformance.md").lines().filter(|line| line.starts_with("| `airlock")) {
        let quoted: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let [name, options @ .., file] = quoted.as_slice() else { panic!("{row}") };
        let name = name.trim_start_matches("airlock").trim();
        let options = options.iter().map(|option| format!("{name} {option}").trim().to_owned());
        let names = [name.to_owned()].into_iter().filter(|name| !name.is_empty()).chain(options);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let shown = file.ends_with(".md").then(|| shown(&command, &path));
        let command_is_elsewhere = |name: &str| !name.contains("--") && quoted.len() > 2;
        for name in names {
            let is_tested = || path.exists() && (exception(&name) || command_is_elsewhere(&name));
            let holds = shown.as_ref().map_or_else(is_tested, |shown| shown.contains(&name));
            assert!(holds, "{file} does not show {name}");
            rows.insert(name);
        }
    }
    // A row of a command is one of the command that it belongs to.
    let has_row = |name: &str| rows.iter().any(|row| row == name || row.starts_with(&format!("{name} ")));
    let missing: Vec<_> = expected.iter().filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "docs/conformance.md has no {missing:#?}");
}

// Conformance: The commands of README and guides parse
#[test]
fn every_command_of_the_documents_parses() {
    let documented = documented();
    assert!(documented.len() > 40, "{documented:?}");
    for (line, path) in &documented {
        for words in commands(line) {
            let result = Args::try_parse_from(words);
            assert!(result.is_ok(), "{}: {line}: {}", path.display(), result.unwrap_err());
        }
    }
}

// Conformance: The commands of README and guides parse
#[test]
fn the_commands_of_the_documents_are_in_transcripts() {
    let shown: BTreeSet<_> = files(TRANSCRIPTS).iter().flat_map(|path| transcript(path)).collect();
    for (line, path) in documented() {
        let runs = !NOT_RUN.iter().any(|prefix| line.starts_with(prefix));
        for words in commands(&line).into_iter().filter(|_| runs) {
            assert!(shown.contains(&words), "{}: in no transcript: {line}", path.display());
        }
    }
}
