//! Sources that can only be ES modules, as ChirpStack has evaluated all codecs since 4.17.

use airlock_runtime::{FailureKind, Slot};

use crate::harness::{Harness, fields, ways};

#[test]
fn functions_of_a_module_are_found_exported_or_not() {
    let mut harness = Harness::new();
    for text in [
        "export function decodeUplink(input) { return { data: { a: input.bytes[0] } }; }",
        "export const decodeUplink = (input) => ({ data: { a: input.bytes[0] } }); // the end",
        "function decodeUplink(input) { return { data: { a: input.bytes[0] } }; }\nexport { decodeUplink };",
        "export default function decodeUplink(input) { return { data: { a: input.bytes[0] } }; }",
        "export{decodeUplink};function decodeUplink(i){return{data:{a:i.bytes[0]}}}",
        // As a minifier writes it.
        "function t(n){return{data:{a:n.bytes[0]}}}export{t as decodeUplink};",
        "function decodeUplink(i) { return { data: { a: i.bytes[0] } }; }\n\
         if (typeof module !== 'undefined') module.exports = { decodeUplink };\nexport default 1;",
        "const module = 1, exports = 2;\nexport function decodeUplink(i) { return { data: { a: i.bytes[0] } }; }",
        "/* licence */ export const x = 1;\nfunction Decoder(bytes) { return { a: bytes[0] }; }",
        "import { Buffer } from \"buffer\";\n\
         function decodeUplink(input) { return { data: { a: Buffer.from(input.bytes).readUInt8(0) } }; }",
        "import * as buffer from 'buffer';\n\
         export function decodeUplink(input) { return { data: { a: buffer.Buffer.from(input.bytes)[0] } }; }",
        "const { Buffer } = await import('buffer');\n\
         function decodeUplink(i) { return { data: { a: Buffer.from(i.bytes)[0] } }; }",
        "const table = await Promise.resolve([9]);\nfunction decodeUplink() { return { data: { a: table[0] } }; }",
    ] {
        harness.check_decodes(text, &[9], r#"{"a":9}"#);
    }
}

#[test]
fn modules_are_strict_and_everything_else_is_a_sloppy_script() {
    let mut harness = Harness::new();
    let module = "export function decodeUplink() { undeclared = 1; return { data: {} }; }";
    harness.check_fails(Slot::Decoder, FailureKind::Thrown, module);
    let script = "var text = `\nimport x;\nexport y;`; // await\n\
                  function decodeUplink() { undeclared = 017; return { data: { a: undeclared } }; }";
    harness.check_decodes(script, &[], r#"{"a":15}"#);
}

#[test]
fn only_buffer_can_be_imported() {
    let mut harness = Harness::new();
    for name in ["os", "base64-js", "./other.js"] {
        let text = format!("import * as x from '{name}';\nfunction decodeUplink() {{ return {{ data: {{}} }}; }}");
        let failure = harness.fail(Slot::Decoder, &text);
        assert_eq!(failure.kind, FailureKind::Syntax);
        assert!(failure.message.contains("only 'buffer' can be imported"), "{failure}");
    }
    let failure = harness.fail(Slot::Decoder, "await import('os');\nfunction decodeUplink() { return { data: {} }; }");
    assert_eq!(failure.kind, FailureKind::Thrown);
    assert!(failure.message.contains("only 'buffer' can be imported"), "{failure}");
    let text = "export function decodeUplink() { return import('buffer'); }";
    harness.check_fails(Slot::Decoder, FailureKind::Output, text);
}

#[test]
fn failures_in_a_module_name_the_authors_line() {
    let mut harness = Harness::new();
    for (text, kind) in [
        ("export function decodeUplink() {\n  return nowhere;\n}", FailureKind::Thrown),
        ("export function decodeUplink() {\n  return { a: }\n}", FailureKind::Syntax),
        ("export const x = 1;\nnowhere();\nfunction decodeUplink() {}", FailureKind::Thrown),
        (
            "export const x = 1;\nawait Promise.reject(new Error('no'));\nfunction decodeUplink() {}",
            FailureKind::Thrown,
        ),
        // What is missing is missing at the author's end.
        ("export function decodeUplink() {\n  return 1;", FailureKind::Syntax),
        // No module either, but read further as a script.
        ("var old = 017;\nfunction decodeUplink() { return }}", FailureKind::Syntax),
    ] {
        let failure = harness.fail(Slot::Decoder, text);
        assert_eq!((failure.kind, failure.line), (kind, Some(2)), "{failure} in {text}");
    }
}

#[test]
fn a_module_keeps_nothing_between_messages() {
    let text = "let n = 0;\nexport function decodeUplink() { n++; return { data: { n } }; }";
    for way in ways() {
        let mut harness = Harness::with_way(way);
        let functions = harness.load_in(Slot::Decoder, text);
        for _ in 0..3 {
            assert_eq!(fields(&harness.decode(&functions, b"x")), r#"{"n":1}"#);
        }
    }
}

#[test]
fn a_module_that_never_settles_is_refused() {
    let mut harness = Harness::new();
    for text in [
        "await new Promise(() => {});\nfunction decodeUplink() { return { data: {} }; }",
        "export function decodeUplink() { return { data: {} }; }\nawait new Promise(() => {});",
    ] {
        let failure = harness.fail(Slot::Decoder, text);
        assert_eq!(failure.kind, FailureKind::Syntax, "{failure}");
        assert!(failure.message.contains("a promise that nothing settles"), "{failure}");
    }
}

#[test]
fn a_module_has_the_limits_of_a_script() {
    let mut harness = Harness::new();
    let (fuel, memory, stack) = (FailureKind::Fuel, FailureKind::Memory, FailureKind::Stack);
    for (kind, body) in [
        (fuel, "while (true) {}"),
        (memory, "const all = []; while (true) all.push(new Uint8Array(1 << 18));"),
        (stack, "const deep = () => deep() + 1; deep();"),
    ] {
        harness.check_fails(Slot::Decoder, kind, &format!("export const x = 1;\n{body}"));
        harness.check_fails(Slot::Decoder, kind, &format!("export function decodeUplink() {{ {body} }}"));
    }
    for (kind, body) in [
        (fuel, "while (true) await null;"),
        // Each promise waits for the next.
        (memory, "const again = () => Promise.resolve().then(again); await again();"),
    ] {
        harness.check_fails(Slot::Decoder, kind, &format!("{body}\nfunction decodeUplink() {{}}"));
    }
}
