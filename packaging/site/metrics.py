#!/usr/bin/env python3
"""Prints the page of metrics for the documentation site: the help text that the code has for each of them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = r"(?:airlock|process)_[a-z_]+"
CONSTANT = re.compile(rf'const (\w+): &str\s*=\s*"({NAME})"')
# What describes a metric, or writes one whose series may end: a name, perhaps a unit or a kind, and a text.
DESCRIBED = re.compile(
    r"((?:describe_\w+!\(|\bgauge\(|\badd\((?:Gauge|Counter), |(?:kind: MetricKind::\w+,\s*)?name: )\s*"
    rf'(?:\b([A-Z][A-Z_]*)|"({NAME})"),\s*(?:(?:kind: )?[\w:]+,\s*)?)(?:help:\s*)?"((?:[^"\\]|\\.)*)"',
    re.DOTALL,
)
KIND = re.compile("counter|gauge|histogram", re.IGNORECASE)


def sources():
    directories = [ROOT / "cli", *ROOT.glob("*/src"), *ROOT.glob("crates/*/src")]
    return sorted(file for directory in directories for file in directory.rglob("*.rs"))


def metrics():
    """The kind and the help text of each metric, by its name."""
    found = {}
    for file in sources():
        # Tests of a file come last, and describe metrics that do not exist.
        text = file.read_text().split("#[cfg(test)]")[0]
        constants = dict(CONSTANT.findall(text))
        for head, constant, name, told in DESCRIBED.findall(text):
            name = name or constants.get(constant)
            if name is not None:
                found[name] = (KIND.search(head).group().lower(), re.sub(r"\\\n\s*", "", told))
    return found


print("""# Metrics

Every process reports its metrics at `/metrics`, as [Operating](operating.md#health-and-metrics) says, with the texts
below. Counters and histograms appear with their first event.

| metric | kind | meaning |
|---|---|---|""")
for name, (kind, told) in sorted(metrics().items()):
    print(f"| `{name}` | {kind} | {told.replace('|', chr(92) + '|')} |")
