//! The transcripts in `transcripts/*.md`, run against a server: what each command prints has to match.
//!
//! In a block `console`, the line `$ command` is for a shell, lines with `> ` continue it, and `? 3` is its exit code
//! if that is not 0. What it prints follows, both streams together: `[..]` stands for any text in a line, and a line
//! `...` for any lines. When a transcript does not match, the test writes what it should be beside the binaries.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use tempfile::TempDir;

use crate::harness::server_process::{ServerProcess, serve};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/commands/transcripts");

/// The routers that gateways can name.
const ROUTERS: &str = r#"[
    {id="a-router", address="a.example.com:1901", mqtt_address="mqtts://a.example.com:8883"},
    {id="another-router", address="b.example.com:1901", mqtt_address="mqtts://b.example.com:8883"}
]"#;

/// Shell for the commands of one file, at a server that all files share.
struct Shell<'a> {
    home: TempDir,
    server: &'a ServerProcess,
    server_data: &'a Path,
}

/// A command and what it printed, as lines of a file from `begin` to `end`.
struct Step {
    begin: usize,
    output: usize,
    end: usize,
    command: String,
    code: i32,
}

// Conformance: Every command does what its transcript shows
#[test]
fn every_command_does_what_its_transcript_shows() {
    let data = tempfile::tempdir().unwrap();
    let server =
        ServerProcess::spawn(serve(data.path()).env("AIRLOCK_ACCOUNT__ROUTERS", ROUTERS).stderr(Stdio::null()));
    let files: Vec<_> = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 5, "{files:?}");
    let failures = thread::scope(|scope| {
        let run = |file: &'_ PathBuf| Shell::new(&server, data.path()).run(file);
        let files: Vec<_> = files.iter().map(|file| scope.spawn(move || run(file))).collect();
        files.into_iter().map(|file| file.join().unwrap()).collect::<String>()
    });
    assert!(failures.is_empty(), "{failures}");
    server.stop();
}

impl<'a> Shell<'a> {
    fn new(server: &'a ServerProcess, server_data: &'a Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let own_data = home.path().join(".local/share/airlock");
        fs::create_dir_all(&own_data).unwrap();
        fs::copy(server_data.join("ca.cert"), own_data.join("ca.cert")).unwrap();
        Self { home, server, server_data }
    }

    /// Runs the commands of a file; returns what did not match.
    fn run(&self, file: &Path) -> String {
        let (text, name) = (fs::read_to_string(file).unwrap(), file.file_name().unwrap().to_str().unwrap());
        let lines: Vec<&str> = text.lines().collect();
        let (mut failures, mut found, mut done) = (String::new(), String::new(), 0);
        for step in steps(&lines) {
            let (code, printed) = self.type_line(&step.command);
            let printed: Vec<_> = printed.trim_end().lines().map(str::trim_end).collect();
            let expected = &lines[step.output..step.end];
            if code == step.code && lines_match(expected, &printed) {
                continue;
            }
            let (line, command) = (step.begin + 1, lines[step.begin]);
            let (expected, printed) = (expected.join("\n"), printed.join("\n"));
            _ = writeln!(failures, "\n{name}:{line}: {command}\n--- expected ({})\n{expected}", step.code);
            _ = writeln!(failures, "--- found ({code})\n{printed}");
            let status = if code == 0 { String::new() } else { format!("? {code}\n") };
            let command = lines[step.begin..step.output].iter().filter(|line| !line.starts_with("? "));
            let command = command.fold(String::new(), |all, line| all + line + "\n");
            let output = if printed.is_empty() { String::new() } else { printed + "\n" };
            found += &lines[done..step.begin].iter().fold(String::new(), |all, line| all + line + "\n");
            found += &(command + &status + &output);
            done = step.end;
        }
        if !failures.is_empty() {
            found += &lines[done..].iter().fold(String::new(), |all, line| all + line + "\n");
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcripts");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join(name), found).unwrap();
        }
        failures
    }

    /// Runs a line of a shell; returns its exit code and what it printed.
    fn type_line(&self, line: &str) -> (i32, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_airlock"));
        let mut shell = Command::new("sh");
        let line = format!("exec 2>&1\nPATH=$PROGRAM:$PATH\n{line}");
        shell.args(["-c", &line]).current_dir(self.home.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AIRLOCK_") || name.starts_with("XDG_")) {
            shell.env_remove(name);
        }
        shell.env("PROGRAM", program.parent().unwrap()).env("HOME", self.home.path()).env("SERVER", self.server_data);
        shell.env("REPOSITORY", env!("CARGO_MANIFEST_DIR")).env("XDG_CACHE_HOME", crate::harness::cache());
        shell.env("AIRLOCK_CLIENT__AUTH_SERVER", self.server.place("account"));
        shell.env("AIRLOCK_CLIENT__DISCOVERY_ADDRESS", self.server.place("discovery"));
        // Addresses of services that commands are given by mistake.
        shell.env("DISCOVERY_HTTP", self.server.http("discovery")).env("HANDLER", self.server.place("handler"));
        let output = shell.output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let (mut steps, mut line) = (Vec::new(), 0);
    while line < lines.len() {
        let Some(command) = lines[line].strip_prefix("$ ") else {
            line += 1;
            continue;
        };
        let (begin, mut command, mut code) = (line, command.to_owned(), 0);
        line += 1;
        while let Some(more) = lines.get(line).and_then(|line| line.strip_prefix("> ")) {
            command += &format!("\n{more}");
            line += 1;
        }
        if let Some(status) = lines.get(line).and_then(|line| line.strip_prefix("? ")) {
            code = status.parse().unwrap();
            line += 1;
        }
        let output = line;
        line += lines[line..].iter().take_while(|line| !line.starts_with("$ ") && **line != "```").count();
        steps.push(Step { begin, output, end: line, command, code });
    }
    steps
}

fn lines_match(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others))
        }
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let parts: Vec<_> = expected.split("[..]").collect();
    let [first, between @ .., last] = parts.as_slice() else { return expected == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn a_transcript_that_differs_does_not_match() {
    for (expected, printed, matches) in [
        ("a", "a", true),
        ("a", "a\nb", false),
        ("a\n...\nd", "a\nb\nc\nd", true),
        ("...\nb", "a\nb\nc", false),
        ("key [..] of [..]!", "key 17 of a of b!", true),
        ("key [..]!", "key 17", false),
        ("[..]ab", "b", false),
    ] {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        assert_eq!(lines_match(&lines(expected), &lines(printed)), matches, "{expected} {printed}");
    }
}
