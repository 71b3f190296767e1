// Which filters an event has, and which of them are subscribed to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { covers, filtersOf, widest } from "../src/filters.js";

test("an event becomes filters below its devices", () => {
  for (const [event, rest, expected] of [
    ["uplink", [], ["my-app/devices/+/up"]],
    ["message", ["+"], ["my-app/devices/+/up"]],
    ["uplink", ["dev-1"], ["my-app/devices/dev-1/up"]],
    ["uplink", ["+", "gps/latitude"], ["my-app/devices/+/up/gps/latitude"]],
    ["activation", [], ["my-app/devices/+/events/activations"]],
    ["activations", ["dev-1"], ["my-app/devices/dev-1/events/activations"]],
    ["event", [], ["my-app/devices/+/events/#"]],
    ["device", ["dev-1"], ["my-app/devices/dev-1/events/#"]],
    ["event", ["+", "downlink/scheduled"], ["my-app/devices/+/events/down/scheduled"]],
    ["event", ["dev-1", "downlink/sent", "delete"], ["my-app/devices/dev-1/events/down/sent", "my-app/devices/dev-1/events/delete"]],
  ]) {
    assert.deepEqual(filtersOf("my-app", event, rest), expected);
  }
});

test("wrong filters are refused with what to give instead", () => {
  for (const [event, rest, message] of [
    ["uplink", ["Dev 1"], /device id `Dev 1` not valid: must have 2 to 36/],
    ["uplink", [undefined], /give one, or `\+` for all devices/],
    ["uplink", ["+", "a/#"], /field `a\/#` not valid: must be a name/],
    ["activation", ["+", "errors"], /listen to `event`/],
    ["event", ["+", "downlinks"], /must be one of activations, .*down\/sent/],
    ["event", ["down/sent"], /device id `down\/sent` not valid/],
  ]) {
    assert.throws(() => filtersOf("my-app", event, rest), message);
  }
});

test("a filter covers what it matches", () => {
  for (const [wide, narrow, expected] of [
    ["a/+/up", "a/b/up", true],
    ["a/b/up", "a/+/up", false],
    ["a/+/up", "a/b/up/c", false],
    ["a/+/events/#", "a/b/events/down/sent", true],
    ["a/+/events/#", "a/+/events/#", true],
    ["a/+/events/down", "a/+/events/#", false],
    ["a/b/up/c", "a/b/up", false],
  ]) {
    assert.equal(covers(wide, narrow), expected, `${wide} ${narrow}`);
  }
  assert.deepEqual(widest(["a/b/up", "a/+/up", "a/b/up/c"]), ["a/+/up", "a/b/up/c"]);
});
