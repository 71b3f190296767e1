//! More verdicts that the networks' own engines gave: on `Buffer`, on what asks for a global, on what makes one, and on
//! syntax and results that engines differ about.

use airlock_workbench::Target;

use crate::lint_cases::{
    CHIRPSTACK, KNOWN, No, OTTO, Right, SCRIPTS, STACK, Warned, Yes, check, everywhere, returning,
};

const LEVEL: &str = "examples: [{ port: 1, bytes: '05', output: { data: { level: 5 } } }]";
const NONE: &str = "examples: []";
const QUICK_JS: &[Target] = &[Target::ChirpStackScript, Target::ChirpStackModule];
const MODERN: &[Target] =
    &[Target::ChirpStackScript, Target::ChirpStackModule, Target::ThingsStack, Target::ThingsStackBefore335];

/// Checks each text with an example and without one.
fn check_all(cases: &[(&[Target], &str, &str, Right)]) {
    for (targets, before, lines, right) in cases {
        for examples in [LEVEL, NONE] {
            check(targets, &everywhere(before, lines), examples, *right);
        }
    }
}

#[test]
fn a_buffer_is_what_the_network_makes_of_it() {
    let setter = "no setter for property";
    let reader = "function Buffer(b) { this.b = b; this.at = 0; }
Buffer.prototype.readUInt8 = function () { return this.b[this.at++]; };";
    let object = "function Buffer(b) { this.b = b; }\nBuffer.prototype = { read: function () { return this.b[0]; } };";
    let from = "function Buffer(b) { this.b = b; }\nBuffer.from = function (b) { return new Buffer(b); };";
    check_all(&[
        (CHIRPSTACK, reader, "  new Buffer(bytes).readUInt8();", Yes),
        (CHIRPSTACK, object, "  new Buffer(bytes).read();", Yes),
        (CHIRPSTACK, from, "  Buffer.from(bytes);", Yes),
        (CHIRPSTACK, "// function Buffer\nvar s = 'function Buffer';", "  Buffer.from(bytes);", Yes),
        (CHIRPSTACK, "", "  function Buffer(b) { this.offset = 0; }\n  new Buffer(bytes);", Yes),
        (CHIRPSTACK, "let Buffer = function (b) { this.offset = 0; };", "  new Buffer(bytes);", Yes),
        (CHIRPSTACK, "function\n Buffer (b) { this.offset = 0; }", "  new Buffer(bytes);", No(setter)),
        (CHIRPSTACK, "function /* x */ Buffer(b) { this.offset = 0; }", "  new Buffer(bytes);", No(setter)),
        (CHIRPSTACK, "function Buffer(b) { var self = this; self.offset = 0; }", "  new Buffer(bytes);", No(setter)),
        (CHIRPSTACK, "", "  var buffer = Buffer.from(bytes); buffer.offset = 0;", No(setter)),
        (CHIRPSTACK, "", "  var buffer = new Buffer(bytes); buffer.parent = 0;", No(setter)),
        (CHIRPSTACK, "", "  var buffer = Buffer.alloc(2); buffer['byteOffset'] = 0;", No(setter)),
        (CHIRPSTACK, "", "  var buffer = Buffer.alloc(2); buffer.offset++;", No(setter)),
        (CHIRPSTACK, "", "  var buffer = Buffer.from(bytes); buffer.position = 0;", Yes),
        (CHIRPSTACK, "", "  var buffer = { offset: 1 }; buffer.offset = 2;", Yes),
        (CHIRPSTACK, "import {Buffer as B} from 'buffer';", "  B.from(bytes);", Yes),
        (CHIRPSTACK, "import * as own from 'buffer';", "  own.Buffer.from(bytes);", Yes),
        (CHIRPSTACK, "import * as ieee from 'ieee754';", "  ieee.read(bytes, 0, true, 23, 4);", Yes),
        (CHIRPSTACK, "import {Buffer} from 'buffer';", "  Buffer.from(bytes);", No("second import")),
        (CHIRPSTACK, "import own from 'buffer';", "  own.Buffer;", No("default")),
    ]);
    // Only running it shows what it reads.
    let length = "function Buffer(b) { this.b = b; }\nBuffer.prototype.size = function () { return this.length; };";
    check(CHIRPSTACK, &everywhere(length, "  new Buffer(bytes).size();"), LEVEL, No("Typed"));
}

#[test]
fn what_a_question_rules_out_is_no_reason() {
    let node = "const isNode = typeof process !== 'undefined' && process.versions;\nif (isNode) { require('fs'); }";
    let both = "  if (typeof globalThis !== 'undefined' && globalThis.process && process.exit) { process.exit(1); }";
    check_all(&[
        (MODERN, node, "", Yes),
        (KNOWN, "var no = typeof window === 'undefined';", "  if (!no) { window.x = screen.y; }", Yes),
        (QUICK_JS, "", "  if (typeof Buffer === 'undefined') { console.log(1); }", Yes),
        (QUICK_JS, "", "  if (typeof Buffer !== 'undefined') { } else { window.foo(); }", Yes),
        (KNOWN, "", "  if (typeof JSON === 'undefined') { window.foo(); }", Yes),
        (MODERN, "", "  if (globalThis.process) { process.exit(1); }", Yes),
        (MODERN, "", "  if (typeof globalThis.process !== 'undefined') { process.exit(1); }", Yes),
        (MODERN, "", "  if ('process' in globalThis) { process.exit(1); }", Yes),
        (MODERN, "", both, Yes),
        (MODERN, "", "  if (typeof JSON !== 'undefined') { window.foo(); }", No("`window`")),
        (MODERN, "var is = typeof window === 'undefined';", "  if (is) { console.log(1); }", No("`console`")),
    ]);
    // It may be another by then.
    let changed = "var is = typeof window !== 'undefined';\nis = true;";
    check(MODERN, &everywhere(changed, "  if (is) { console.log(1); }"), NONE, No("`console`"));
    // It is there in other functions than the decoder.
    let fields = everywhere("", "  if (typeof fields === 'undefined') { window.foo(); }");
    check(&[Target::TtnV2], &fields, NONE, No("`window`"));
}

#[test]
fn globals_are_made_as_members_of_the_global_object() {
    let array = "Array.prototype['toSorted'] = function () { return this; };";
    check_all(&[
        (MODERN, "globalThis.console = { log: function () {} };", "  console.log(2);", Yes),
        (MODERN, "globalThis['console'] = { log: function () {} };", "  console.log(2);", Yes),
        (SCRIPTS, "this.console = { log: function () {} };", "  console.log(2);", Yes),
        (MODERN, "globalThis.twice = function (x) { return 2 * x; };", "  twice(2);", Yes),
        (MODERN, "Object.defineProperty(globalThis, 'console', { value: { log() {} } });", "  console.log(2);", Yes),
        (KNOWN, array, "  bytes.toSorted();", Yes),
        (STACK, "", "  bytes['toSorted']();", No("`Array.prototype.toSorted`")),
        (OTTO, "", "  Object['assign']({}, {});", No("`Object.assign`")),
    ]);
    let body = "function (input) { return { data: { level: input.bytes[0] } }; }";
    for (targets, script) in [
        (SCRIPTS, format!("this['decodeUplink'] = {body};")),
        (MODERN, format!("globalThis['decodeUplink'] = {body};")),
        (SCRIPTS, format!("(function (root) {{ root.decodeUplink = {body}; }})(this);")),
        (MODERN, format!("((root) => {{ root.decodeUplink = {body}; }})(globalThis);")),
        (MODERN, format!("Object.assign(globalThis, {{ decodeUplink: {body} }});")),
    ] {
        check(targets, &script, LEVEL, Yes);
        check(targets, &script, NONE, Yes);
    }
}

#[test]
fn regular_expressions_are_those_of_the_engine() {
    check_all(&[
        (STACK, "", "  new RegExp('a.b', 's').test('a');", No("flag `s`")),
        (STACK, "", "  RegExp(port, 'gs').test('a');", No("flag `s`")),
        (STACK, "", "  /a/d.test('a');", No("flag `d`")),
        (STACK, "", "  try { new RegExp('a', 's'); } catch (e) { }", Yes),
        (STACK, "", "  new RegExp('a', 'u').test('a');", Yes),
        (STACK, "", "  /(?<y>a)\\k<y>/.test('aa');", Yes),
        (STACK, "", "  /(?<y>a)/.exec('a').groups.y;", No("`groups`")),
        (STACK, "", "  'a'.replace(/(?<y>a)/, '[$<y>]');", No("`groups`")),
        (KNOWN, "", "  /[(?<y>]/.test('a');", Yes),
        (KNOWN, "", "  /\\(?<y>/.test('a');", Yes),
        (OTTO, "", "  new RegExp('(?<y>a)').test('a');", No("named groups")),
        (OTTO, "", "  new RegExp('a(?=b)').test('ab');", No("`(?=`")),
        (OTTO, "", "  new RegExp('(a)\\\\1').test('aa');", No("`\\1`")),
        (OTTO, "", "  /a/s.test('a');", Warned("ignores the flag `s`")),
    ]);
}

#[test]
fn engines_differ_about_syntax() {
    check_all(&[
        (KNOWN, "#!/usr/bin/env node", "", No("`#!`")),
        (SCRIPTS, "", "  var meta = import.meta;", No("`import.meta`")),
        (OTTO, "", "  var meta = import.meta;", No("`import.meta`")),
        (SCRIPTS, "let undefined = 1;", "", No("`undefined`")),
        (SCRIPTS, "const undefined = void 0;", "", No("`undefined`")),
        (CHIRPSTACK, "let undefined = 1;", "", Yes),
        (SCRIPTS, "var undefined;", "", Yes),
        (CHIRPSTACK, "{ function z() {} } let z;", "", Yes),
        (STACK, "{ function z() {} }\nlet z = 1;", "  z;", Yes),
        (&[Target::ChirpStackScript], "{ function z() {} } let z;", "", No("not initialized")),
        (CHIRPSTACK, "", "  if (true) { function g() { return 1; } } g();", No("strict code")),
        (MODERN, "'use strict';", "  if (true) { function g() { return 1; } } g();", No("")),
        (CHIRPSTACK, "", "  if (true) { function g() { return 1; } g(); }", Yes),
        (CHIRPSTACK, "function dead() { with ({ a: 1 }) { a; } }", "", No("'with'")),
        (MODERN, "'use strict';\nfunction f() { with ({ a: 1 }) { a; } }", "", No("")),
        (OTTO, "'use strict';\nfunction f() { with ({ a: 1 }) { a; } }", "", Yes),
        (OTTO, "function f() { 'use strict'; return 017; }", "", Yes),
    ]);
}

#[test]
fn otto_has_no_later_methods_and_fewer_digits() {
    check_all(&[
        (OTTO, "", "  (1).toFixed(20);", Yes),
        (OTTO, "", "  (1).toFixed(21);", No("21 digits")),
        (OTTO, "", "  var n = 30; (1).toFixed(n);", No("30 digits")),
        (OTTO, "", "  try { (1).toFixed(30); } catch (e) { }", Yes),
        (MODERN, "", "  (1).toFixed(30);", Yes),
        (OTTO, "", "  bytes.at(0);", No("`Array.prototype.at`")),
        (OTTO, "", "  bytes.keys();", No("`Array.prototype.keys`")),
        (OTTO, "", "  [1].values();", No("`Array.prototype.values`")),
        (OTTO, "", "  [1].entries();", No("`Array.prototype.entries`")),
        (OTTO, "", "  var m = { entries: function () { return []; } }; m.entries();", Yes),
        (KNOWN, "", "  Object.keys({});", Yes),
        (STACK, "", "  bytes.at(0); bytes.keys();", Yes),
    ]);
}

#[test]
fn functions_and_nan_are_no_fields() {
    let result = "{ data: { level: 5, f: function () { return 1; } } }";
    check(STACK, &returning(result), LEVEL, No("returns a function"));
    check(QUICK_JS, &returning(result), LEVEL, Yes);
    check(STACK, &returning("{ data: { level: 5 }, f: function () {} }"), LEVEL, Yes);
    let text = "{ data: { level: JSON.parse(JSON.stringify({ a: 5, f: Math.max })).f ? 4 : 5 } }";
    check(STACK, &returning(text), LEVEL, Yes);
    let list = LEVEL.replace("level: 5", "list: [null]");
    check(STACK, &returning("{ data: { list: [Math.max] } }"), &list, No("returns a function"));
    // The examples are those of a decoder of TS013, which calls the older one.
    let nan = LEVEL.replace("level: 5", "t: null");
    check(OTTO, &everywhere("", "  return { t: NaN };"), &nan, No("publishes nothing"));
}
