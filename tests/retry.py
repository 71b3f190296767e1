#!/usr/bin/env python3
"""Runs `cargo test`. A test that fails runs once more, alone, and fails the run only if it fails again.

    tests/retry.py SUMMARY cargo test OPTIONS -- ARGUMENTS

ARGUMENTS are for the first run only. The lines that end the run, its summary, go to the file SUMMARY rather than to the
output, so that `check` can end with them.
"""

import os
import re
import select
import subprocess
import sys

# More than this many is no accident.
RETRIES_MAX = 10
# Lines to show of what a test printed.
TEXT_LINES_MAX = 60
# The options that select targets; a test that runs again needs only its own.
SELECTION = ("--lib", "--bins", "--tests")
# Seconds after which to look whether a command has ended: what it left running may hold its output open.
PATIENCE = 0.5
# A pipe holds no more bytes.
PIPE_BYTES_MAX = 1 << 16

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RUNNING = re.compile(r" +Running .*\)$")
RESULT = re.compile(r"test result: (ok|FAILED)\. (\d+) passed; (\d+) failed;")
TARGET_FAILED = re.compile(r"error: test failed, to rerun pass `(.+)`$")
TARGETS_FAILED = re.compile(r"error: (\d+) targets? failed:$")
FAILED_TARGET = re.compile(r"    `.+`$")


class Failure:
    """A test that failed: the options that select its target, its name, and what it printed."""

    def __init__(self, target, name, text):
        self.target, self.name, self.text = target, name, text

    def show(self):
        say(f"    {self.target}: {self.name}")
        for line in self.text[:TEXT_LINES_MAX]:
            say(f"        {line}".rstrip())
        if len(self.text) > TEXT_LINES_MAX:
            say(f"        … {len(self.text) - TEXT_LINES_MAX} lines more")


class Output:
    """The lines of a run. They are printed as they come, except those that may be its summary."""

    def __init__(self, is_shown):
        self.is_shown, self.lines, self.summary = is_shown, [], []

    def add(self, raw):
        line = COLOUR.sub("", raw.decode(errors="replace")).rstrip()
        self.lines.append(line)
        # Behind a result is a blank line, and behind the number of failed targets their list.
        if self.summary and (not line or FAILED_TARGET.match(line)):
            self.summary.append(raw)
            return
        self.show_summary()
        if TARGETS_FAILED.match(line) or RESULT.match(line):
            self.summary = [raw]
        else:
            self.show(raw)

    def show_summary(self):
        self.show(b"".join(self.summary))
        self.summary = []

    def show(self, raw):
        if self.is_shown:
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()


def say(text):
    print(text, flush=True)


def run(command, is_shown):
    """Returns the exit code of a command, and its output."""
    output, rest = Output(is_shown), b""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    pipe = process.stdout.fileno()
    has_ended = False
    while not has_ended:
        # Before it is read for the last time, which is everything that is in the pipe by then.
        has_ended = process.poll() is not None
        if not select.select([pipe], [], [], 0 if has_ended else PATIENCE)[0]:
            continue
        read = os.read(pipe, PIPE_BYTES_MAX)
        if not read:
            break
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            output.add(line + b"\n")
    if rest:
        output.add(rest)
    code = process.wait()
    return (code if code >= 0 else 128 - code), output


def failures_of(lines):
    """Returns the tests that failed, or None where something else failed, too: a compilation, or a whole process."""
    failures, targets, counts, start = [], 0, [], 0
    for place, line in enumerate(lines):
        if RUNNING.match(line):
            start = place
        elif failed := TARGET_FAILED.match(line):
            listed = listed_in(lines[start:place], failed[1])
            if listed is None or has_crashed(lines[place + 1 :]):
                return None
            failures += listed
            targets += 1
        elif failed := TARGETS_FAILED.match(line):
            counts.append(int(failed[1]))
    return failures if counts == [targets] else None


def has_crashed(rest):
    """Returns true if a test process ended otherwise than by failed tests. What it left running may have printed, too."""
    end = next((place for place, line in enumerate(rest) if RUNNING.match(line) or TARGETS_FAILED.match(line)), len(rest))
    return "Caused by:" in rest[:end]


def listed_in(section, target):
    """Returns the failures that a test process lists at the end of its output, or None unless it lists all."""
    results = [place for place, line in enumerate(section) if RESULT.match(line)]
    lists = [place for place, line in enumerate(section) if line == "failures:"]
    if not results or not lists:
        return None
    result, names = RESULT.match(section[results[-1]]), section[lists[-1] + 1 : results[-1]]
    names = [name.strip() for name in names if name.strip()]
    if result[1] != "FAILED" or len(names) != int(result[3]):
        return None
    return [Failure(target, name, text_of(section[: lists[-1]], name)) for name in names]


def text_of(section, name):
    """Returns what a test printed."""
    header = f"---- {name} stdout ----"
    if header not in section:
        return []
    text = section[section.index(header) + 1 :]
    end = next((place for place, line in enumerate(text) if re.fullmatch(r"---- \S+ stdout ----", line)), len(text))
    while end and not text[end - 1]:
        end -= 1
    return text[:end]


def passes_alone(command, failure):
    """Runs one test again. Returns whether it passed, and the output."""
    command = [option for option in command if option not in SELECTION]
    # Not with `-p`: for one package, Cargo would choose other features, and build again. If other packages have a test of
    # that name, it runs as well, before or after.
    target = re.sub(r"^-p \S+ ", "", failure.target).split()
    code, output = run([*command, *target, "--", "--exact", failure.name], is_shown=False)
    return code == 0 and bool(results_with_tests(output.lines)), output


def results_with_tests(lines):
    return [line for line in lines if (result := RESULT.match(line)) and int(result[2]) > 0]


def retry(command, failures):
    """Runs each test again. Returns the summary of the last one if all of them passed."""
    flaky, summary = [], []
    for failure in failures:
        say(f"\nRunning once more, alone: {failure.target}: {failure.name}")
        passed, output = passes_alone(command, failure)
        if passed:
            flaky.append(failure)
            summary = results_with_tests(output.lines)
        else:
            say("It failed again:")
            (failures_of(output.lines) or [Failure(failure.target, failure.name, output.lines)])[0].show()
    if flaky:
        say(f"\nFlaky, because they passed when they ran alone: {len(flaky)}. Their first failures:")
        for failure in flaky:
            failure.show()
    return summary if len(flaky) == len(failures) else []


def main():
    # What a test printed must not end the run where a locale has fewer characters.
    sys.stdout.reconfigure(errors="replace")
    summary_file, *command = sys.argv[1:]
    end = command.index("--")
    command, arguments = command[:end], command[end + 1 :]
    code, output = run([*command, *arguments], is_shown=True)
    summary = b"".join(output.summary)
    failures = failures_of(output.lines) if code else []
    if failures and len(failures) > RETRIES_MAX:
        say(f"\n{len(failures)} tests failed, which is no accident: none runs again")
    elif failures:
        last = retry(command, failures)
        if last:
            code, summary = 0, "\n".join([*last, ""]).encode()
    with open(summary_file, "wb") as file:
        file.write(summary)
    sys.exit(code)


main()
