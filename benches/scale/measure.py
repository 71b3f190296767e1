"""How fast Spark and Node decode stored uplinks again, compared with `airlock replay` on the same machine, in one run.

    python3 -m venv /tmp/scale && /tmp/scale/bin/pip install pyspark 'pandas<3' pyarrow duckdb
    /tmp/scale/bin/python benches/scale/measure.py

Spark's programs are those of docs/scale.md, word for word: one hands out files, the other sends rows as lines of JSON.
`AIRLOCK` is the program (target/release/airlock), `AIRLOCK_CORPUS` a directory of records with codecs
(tests/fixtures/codecs), `AIRLOCK_UPLINKS` how many uplinks there are, in millions (2), `AIRLOCK_ROUNDS` how often each
way runs (3), and `NODE_UPLINKS` how many uplinks Node decodes (40000), which reads the same Parquet files through
DuckDB; with 0, Node does not run. The files are in `AIRLOCK_DIR` (/tmp) meanwhile. Needs Java and Node.
"""

import datetime
import itertools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parents[2]
AIRLOCK = pathlib.Path(os.environ.get("AIRLOCK", ROOT / "target/release/airlock")).resolve()
CORPUS = pathlib.Path(os.environ.get("AIRLOCK_CORPUS", ROOT / "tests/fixtures/codecs"))
DIR = os.environ.get("AIRLOCK_DIR")
UPLINKS = int(float(os.environ.get("AIRLOCK_UPLINKS", "2")) * 1e6)
ROUNDS = int(os.environ.get("AIRLOCK_ROUNDS", "3"))
NODE_UPLINKS = int(os.environ.get("NODE_UPLINKS", "40000"))
CODECS = 40
WORKERS = 2
# Airlock would read them as settings.
for name in [name for name in os.environ if name.startswith("AIRLOCK")]:
    del os.environ[name]
# Spark's programs, by a word that only one of them has.
SPARK = {"decode_files.py": '"replay"', "decode_again.py": "mapInPandas"}
FILES, ROWS = (f"Spark, {WORKERS} workers, {name}" for name in ("by files", "by rows"))
# What is taken off the time of Spark and Node is how long they take for so few: for Spark of two codecs, so that only
# its start is taken off, and not that of a process for each file.
FEW = 4000
FEW_CODECS = 2


def codecs():
    """Evenly chosen codecs, with their scripts and the messages that they decode, whatever the time is."""
    found = []
    for file in sorted(CORPUS.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            script = record.get("script") or (CORPUS / record["script_file"]).read_text()
            uplinks = [example for example in record["examples"] if example.get("kind", "uplink") == "uplink"]
            lines = [
                json.dumps({"hex": example["bytes_hex"], "port": example["port"], "time": "2026-11-28T10:00:00Z"})
                for example in uplinks
                if "bytes_hex" in example
            ]
            found.append((script, lines))
    return found


def results(script, lines, dir):
    """What a codec makes of each message; none if it fails."""
    (dir / "codec.js").write_text(script)
    command = [AIRLOCK, "functions", "run", dir / "codec.js", "--stream"]
    made = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line).get("fields") for line in made]


def prepare(dir):
    """A directory of codecs, and of each the messages and the results that it decodes."""
    (dir / "codecs").mkdir()
    usable = []
    for script, lines in codecs():
        made = results(script, lines, dir)
        pairs = [(json.loads(line), fields) for line, fields in zip(lines, made) if fields is not None]
        if pairs:
            usable.append((script, pairs))
    step = max(1, len(usable) / CODECS)
    chosen = [usable[int(number * step)] for number in range(min(CODECS, len(usable)))]
    messages = {}
    for number, (script, pairs) in enumerate(chosen):
        app_id = f"app-{number:02}"
        (dir / "codecs" / f"{app_id}.js").write_text(script)
        messages[app_id] = pairs
    return messages


def table(app_id, pairs, count):
    """Rows as the history has them."""
    cycle = list(itertools.islice(itertools.cycle(pairs), count))
    start = datetime.datetime(2026, 11, 28, tzinfo=datetime.timezone.utc)
    times = [start + datetime.timedelta(milliseconds=number) for number in range(count)]
    millis, u32 = pyarrow.timestamp("ms", "UTC"), pyarrow.uint32()
    texts = [json.dumps(fields, separators=(",", ":")) for _, fields in pairs]
    none = [None] * count
    return pyarrow.table(
        {
            "recorded": pyarrow.array(times, millis),
            "writer": pyarrow.array([7] * count, u32),
            "number": pyarrow.array(range(count), u32),
            "received": pyarrow.array(times, millis),
            "app_id": [app_id] * count,
            "dev_id": [f"device-{number % 1000:03}" for number in range(count)],
            "kind": ["up"] * count,
            "port": pyarrow.array([message["port"] for message, _ in cycle], pyarrow.uint8()),
            "counter": pyarrow.array(range(count), u32),
            "payload": [bytes.fromhex(message["hex"]) for message, _ in cycle],
            "extra": pyarrow.array(none, pyarrow.string()),
            "seed": pyarrow.array(none, pyarrow.uint64()),
            "outcome": ["decoded"] * count,
            "result": list(itertools.islice(itertools.cycle(texts), count)),
            "revision": pyarrow.array([0] * count, u32),
            "corrects": pyarrow.array(none, pyarrow.string()),
        }
    )


def write(dir, messages, count):
    """Files like those of the history, and all of them as one."""
    all_of_them = None
    for app_id, pairs in messages.items():
        rows = table(app_id, pairs, count // len(messages))
        file = dir / f"app={app_id}" / "day=2026-11-28" / "1-2-3.parquet"
        file.parent.mkdir(parents=True)
        pyarrow.parquet.write_table(rows, file, compression="lz4")
        all_of_them = all_of_them or pyarrow.parquet.ParquetWriter(dir / "all.parquet", rows.schema, compression="lz4")
        all_of_them.write_table(rows)
    all_of_them.close()


def seconds(command, may_end_with=(0,), **options):
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode not in may_end_with:
        sys.exit(done.stderr[-4000:])
    return time.monotonic() - start


def replay(dir, messages):
    of = itertools.chain.from_iterable(("--codec", f"{app_id}={dir / 'codecs' / app_id}.js") for app_id in messages)
    command = [AIRLOCK, "replay", "--from", dir / "rows/all.parquet", "--column", "profile=app_id", *of]
    # It may find differences: codecs that use the time or random numbers.
    return seconds([*command, "--output", dir / "replayed.parquet", "--json"], may_end_with=(0, 1))


def write_programs(dir):
    texts = re.findall(r"```python\n(.*?)```", (ROOT / "docs/scale.md").read_text(), re.DOTALL)
    for program, word in SPARK.items():
        (dir / program).write_text(next(text for text in texts if "SparkSession" in text and word in text))


def spark(dir, program, rows):
    decoded = dir / "decoded" / program
    shutil.rmtree(decoded, ignore_errors=True)
    decoded.parent.mkdir(exist_ok=True)
    submit = [pathlib.Path(sys.executable).with_name("spark-submit"), "--master", f"local-cluster[{WORKERS},1,2048]"]
    path = f"{dir / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable}
    arguments = [f"{dir / rows}/app=*/*/*.parquet", dir / "codecs", decoded]
    return seconds([*submit, dir / program, *arguments], env=environment)


def check_spark(dir):
    """Spark did the same work: over files, its results are those of `airlock replay`; of rows it has as many."""
    counts = "SELECT verdict, count(*), sum(fuel) FROM read_parquet('{}') GROUP BY verdict ORDER BY verdict"
    replayed, decoded = (
        duckdb.sql(counts.format(files)).fetchall()
        for files in (dir / "replayed.parquet", dir / "decoded/decode_files.py/*/*/*.parquet")
    )
    print(f"by files: {decoded}", file=sys.stderr)
    [[rows]] = duckdb.sql(f"SELECT count(*) FROM read_parquet('{dir}/decoded/decode_again.py/*.parquet')").fetchall()
    if replayed != decoded or rows != sum(count for _, count, _ in replayed):
        sys.exit(f"Spark does not do the same work: {replayed} replayed, {rows} rows")


def stream(dir, messages):
    """The mode that Spark drives, on lines of a file."""
    total = 0
    for app_id in messages:
        with open(dir / "lines" / f"{app_id}.jsonl") as lines, open(dir / "made.jsonl", "w") as made:
            start = time.monotonic()
            command = [AIRLOCK, "functions", "run", dir / "codecs" / f"{app_id}.js", "--stream"]
            subprocess.run(command, stdin=lines, stdout=made, check=True)
            total += time.monotonic() - start
    return total


LINES = """
import sys, duckdb
files, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
duckdb.execute("SET threads = 1; SET enable_progress_bar = false")
duckdb.execute(f'''COPY (
    SELECT app_id, dev_id, port, base64(payload) AS payload, epoch_ms(received) AS received, result
    FROM read_parquet('{files}', hive_partitioning = false) WHERE kind = 'up' AND number % {parts} = {part}
) TO '/dev/stdout' (FORMAT json)''')
"""


def node(dir, rows):
    """Node with a context for each message, in as many processes as there are processors here."""
    start, running = time.monotonic(), []
    for part in range(WORKERS):
        read = [sys.executable, "-c", LINES, f"{dir / rows}/app=*/*/*.parquet", str(part), str(WORKERS)]
        lines = subprocess.Popen(read, stdout=subprocess.PIPE)
        run = ["node", ROOT / "benches/peers/decode_again.js", dir / "codecs", dir / f"node-{part}.jsonl"]
        running += [lines, subprocess.Popen(run, stdin=lines.stdout)]
        lines.stdout.close()
    if any([process.wait() for process in running]):
        sys.exit("Node failed")
    return time.monotonic() - start


def check_node(dir):
    """Node did the same work: what it makes is what is stored, but for codecs that use the time or random numbers."""
    made = [line for part in range(WORKERS) for line in (dir / f"node-{part}.jsonl").read_text().splitlines()]
    same = sum(json.loads(line)["same"] for line in made)
    print(f"Node: {len(made)} uplinks, {same} with the stored result", file=sys.stderr)
    if same < 0.9 * len(made):
        sys.exit("Node does not do the same work")


def write_lines(dir, messages, count):
    (dir / "lines").mkdir()
    for app_id, pairs in messages.items():
        lines = [json.dumps(message) + "\n" for message, _ in pairs]
        with open(dir / "lines" / f"{app_id}.jsonl", "w") as out:
            out.writelines(itertools.islice(itertools.cycle(lines), count // len(messages)))


def main():
    with tempfile.TemporaryDirectory(dir=DIR) as name:
        dir = pathlib.Path(name)
        (dir / "bin").mkdir()
        (dir / "bin/airlock").symlink_to(AIRLOCK)
        write_programs(dir)
        messages = prepare(dir)
        write(dir / "rows", messages, UPLINKS)
        write(dir / "start", dict(itertools.islice(messages.items(), FEW_CODECS)), FEW)
        write_lines(dir, messages, UPLINKS)
        starts = {
            way: min(spark(dir, program, "start") for _ in range(2)) for way, program in zip((FILES, ROWS), SPARK)
        }
        ways = {
            "airlock replay": lambda: UPLINKS / replay(dir, messages),
            "airlock functions run --stream": lambda: UPLINKS / stream(dir, messages),
            FILES: lambda: UPLINKS / spark(dir, "decode_files.py", "rows"),
            ROWS: lambda: UPLINKS / spark(dir, "decode_again.py", "rows"),
        }
        if NODE_UPLINKS:
            ways[f"Node, {WORKERS} processes, without the start"] = node_way(dir, messages)
        rates = {way: [] for way in ways}
        for number in range(ROUNDS):
            for way, run in ways.items():
                rates[way].append(run())
                print(f"round {number + 1}: {way}: {rates[way][-1]:,.0f}/s", file=sys.stderr)
        check_spark(dir)
        if NODE_UPLINKS:
            check_node(dir)
        report(rates, starts, len(messages))


def node_way(dir, messages):
    write(dir / "node", messages, NODE_UPLINKS)
    write(dir / "few", messages, FEW)
    few = min(node(dir, "few") for _ in range(2))
    return lambda: (NODE_UPLINKS - FEW) / (node(dir, "node") - few)


def report(rates, starts, codecs):
    print(f"{UPLINKS} uplinks of {codecs} codecs ({NODE_UPLINKS} in Node), {ROUNDS} rounds, the median of each way.\n")
    print("| | uplinks/s | ÷ replay |\n|---|--:|--:|")
    medians = {way: statistics.median(all_rates) for way, all_rates in rates.items()}
    for way, start in starts.items():
        running = UPLINKS / (UPLINKS / medians[way] - start)
        medians[f"{way}, without the {start:.1f} s that {FEW} uplinks of {FEW_CODECS} codecs take"] = running
    for way, rate in medians.items():
        print(f"| {way} | {rate:,.0f} | {rate / medians['airlock replay']:.3f} |")


if __name__ == "__main__":
    main()
