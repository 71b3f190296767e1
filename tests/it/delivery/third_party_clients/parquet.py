"""Reads a directory of history, and an exported file, with DuckDB and pandas, and runs queries in the directory above.

Prints what all of them see of the uplinks, and the results of the queries.
"""

import glob
import json
import os
import sys

import duckdb
import pandas

directory, exported, *documented = sys.argv[1:]
query = """
    SELECT dev_id, port, hex(payload) AS payload, outcome, CAST(result->>'$.celsius' AS INTEGER) AS celsius
    FROM read_parquet(?) WHERE kind = 'up' ORDER BY recorded, number
"""
pattern = directory + "/app=*/*/*.parquet"
by_duckdb = [duckdb.execute(query, [path]).fetchall() for path in (pattern, exported)]
assert by_duckdb[0] == by_duckdb[1], by_duckdb


def uplinks(frame):
    assert frame["recorded"].dtype.kind == "M", frame.dtypes
    frame = frame[frame["kind"] == "up"].sort_values(["recorded", "number"])
    rows = zip(frame["dev_id"], frame["port"], frame["payload"], frame["outcome"], frame["result"])
    return [
        (dev_id, port, payload.hex().upper(), outcome, celsius(result))
        for dev_id, port, payload, outcome, result in rows
    ]


def celsius(result):
    return json.loads(result)["celsius"] if isinstance(result, (str, bytes)) else None


sealed = pandas.concat([pandas.read_parquet(path) for path in glob.glob(pattern)], ignore_index=True)
for frame in (sealed, pandas.read_parquet(exported)):
    assert uplinks(frame) == by_duckdb[0], (uplinks(frame), by_duckdb[0])

os.chdir(os.path.dirname(directory))
results = [sorted(duckdb.sql(query).fetchall()) for query in documented]
print(json.dumps({"uplinks": by_duckdb[0], "documented": results}))
