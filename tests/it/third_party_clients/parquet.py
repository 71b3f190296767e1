"""Reads a directory of history, and an exported file, with DuckDB and pandas. Prints what both see of the uplinks."""

import json
import sys

import duckdb
import pandas

directory, exported = sys.argv[1:]
query = """
    SELECT dev_id, port, hex(payload) AS payload, outcome, CAST(result->>'$.celsius' AS INTEGER) AS celsius
    FROM read_parquet(?) WHERE kind = 'up' ORDER BY recorded, number
"""
by_duckdb = [duckdb.execute(query, [path]).fetchall() for path in (directory + "/app=*/*/*.parquet", exported)]
assert by_duckdb[0] == by_duckdb[1], by_duckdb

frame = pandas.read_parquet(exported)
frame = frame[frame["kind"] == "up"].sort_values(["recorded", "number"])
rows = zip(frame["dev_id"], frame["port"], frame["payload"], frame["outcome"], frame["result"])
by_pandas = [
    (dev_id, port, payload.hex().upper(), outcome, json.loads(result)["celsius"] if result else None)
    for dev_id, port, payload, outcome, result in rows
]
assert by_pandas == by_duckdb[0], (by_pandas, by_duckdb[0])
assert frame["recorded"].dtype.kind == "M", frame.dtypes
print(json.dumps(by_duckdb[0]))
