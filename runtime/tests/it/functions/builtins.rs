//! The built-ins of scripts, and what they cannot reach.

use airlock_runtime::{FailureKind, Slot};

use crate::harness::{Harness, fields};

/// Asserts the JSON value of each expression.
fn check(table: &[(&str, &str)]) {
    let mut harness = Harness::new();
    for (expression, expected) in table {
        let text = format!("function Decoder(bytes) {{ return {{ is: {expression} }}; }}");
        harness.check_decodes(&text, &[1, 2, 3, 4, 5, 6, 7, 8], &format!("{{\"is\":{expected}}}"));
    }
}

#[test]
fn buffers_are_created_from_anything_with_bytes() {
    check(&[
        ("Buffer.from(bytes)", r#"{"type":"Buffer","data":[1,2,3,4,5,6,7,8]}"#),
        ("Buffer.from([257, -1, 1.7, '3']).toString('hex')", r#""01ff0103""#),
        ("Buffer.from('01fFzz00', 'hex').toString('hex')", r#""01ff""#),
        ("Buffer.from('aGk', 'base64').toString()", r#""hi""#),
        ("Buffer.from('-_8=', 'base64url').toString('hex')", r#""fbff""#),
        ("Buffer.from('hé€😀').toString('hex')", r#""68c3a9e282acf09f9880""#),
        ("Buffer.from('é\\u20ac', 'latin1').toString('hex')", r#""e9ac""#),
        ("Buffer.from('a€', 'utf16le').toString('hex')", r#""6100ac20""#),
        ("Buffer.from(new Uint16Array([1, 300])).toString('hex')", r#""012c""#),
        ("Buffer.from(new Uint8Array(bytes).buffer, 2, 3).toString('hex')", r#""030405""#),
        ("Buffer.from({ type: 'Buffer', data: [1, 2] }).length", "2"),
        ("Buffer.from(new String('ab')).toString()", r#""ab""#),
        ("Buffer.alloc(3, 'ab').toString()", r#""aba""#),
        ("new Buffer(2).length + Buffer('abc').length", "5"),
        ("Buffer.concat([Buffer.from([1]), new Uint8Array([2])], 3).toString('hex')", r#""010200""#),
    ]);
}

#[test]
fn buffers_are_byte_arrays() {
    check(&[
        ("[Buffer.isBuffer(Buffer.alloc(0)), Buffer.isBuffer(new Uint8Array(0))]", "[true,false]"),
        ("Buffer.from(bytes) instanceof Uint8Array", "true"),
        ("Buffer.isBuffer(Buffer.from(bytes).map((byte) => byte))", "true"),
        ("(() => { const b = Buffer.from(bytes); b.slice(-2)[0] = 9; return b[6]; })()", "9"),
        ("Array.from(Buffer.from(bytes).entries()).length", "8"),
        ("Buffer.from(bytes).toString('hex', 1, 3)", r#""0203""#),
        ("Buffer.from([104, 200]).toString('ascii')", r#""hH""#),
        ("Buffer.from([0xff, 0x41]).toString()", "\"\u{fffd}A\""),
        ("[Buffer.byteLength('é'), Buffer.byteLength('é', 'latin1'), Buffer.byteLength('0102', 'hex')]", "[2,1,2]"),
        ("Buffer.compare(Buffer.from([1, 2]), Buffer.from([1, 3]))", "-1"),
        ("Buffer.from('hello').indexOf('l') + 10 * Buffer.from('hello').lastIndexOf('l')", "32"),
        ("[Buffer.from('hello').includes('lo'), Buffer.from('hello').equals(Buffer.from('hello'))]", "[true,true]"),
        (
            "(() => { const b = Buffer.alloc(4); return [Buffer.from(bytes).copy(b, 1, 6), b.toString('hex')]; })()",
            r#"[2,"00070800"]"#,
        ),
        ("(() => { const b = Buffer.alloc(3); return [b.write('éé'), b.toString('hex')]; })()", r#"[2,"c3a900"]"#),
        ("Buffer.from([1, 2, 3, 4]).swap16().toString('hex')", r#""02010403""#),
        ("Object.keys(Buffer.from([7]))", r#"["0"]"#),
    ]);
}

#[test]
fn buffers_read_and_write_numbers() {
    check(&[
        ("Buffer.from(bytes).readUInt16BE(1) + Buffer.from(bytes).readUint16LE()", "1028"),
        ("[Buffer.from([0xfe, 0xff]).readInt16LE(), Buffer.from([0x80]).readInt8(0)]", "[-2,-128]"),
        ("[Buffer.from(bytes).readUInt32LE(4), Buffer.from([255, 0, 0, 0]).readInt32BE()]", "[134678021,-16777216]"),
        (
            "[Buffer.from(bytes).readUIntBE(0, 3), Buffer.from([255, 2, 3, 4, 5, 255]).readIntLE(0, 6)]",
            "[66051,-1077969485057]",
        ),
        (
            "[Buffer.from('3fc00000', 'hex').readFloatBE(), Buffer.from('000000000000f83f', 'hex').readDoubleLE()]",
            "[1.5,1.5]",
        ),
        (
            "String(Buffer.from(bytes).readBigUInt64LE()) + Buffer.alloc(8, 255).readBigInt64BE()",
            r#""578437695752307201-1""#,
        ),
        (
            "(() => { const b = Buffer.alloc(8); b.writeInt16LE(-2, 1); b.writeFloatBE(1.5, 4); return b.toString('hex'); })()",
            r#""00feff003fc00000""#,
        ),
        (
            "(() => { const b = Buffer.alloc(8); return [b.writeUIntBE(0x010203, 0, 3), b.writeUInt8(9, 3), b.toString('hex')]; })()",
            r#"[3,4,"0102030900000000"]"#,
        ),
        (
            "(() => { const b = Buffer.alloc(8); b.writeBigInt64BE(-2n); return b.toString('hex'); })()",
            r#""fffffffffffffffe""#,
        ),
    ]);
}

#[test]
fn buffers_refuse_what_node_refuses() {
    let caught = |body: &str| {
        format!("(() => {{ try {{ {body} }} catch (e) {{ return `${{e.name}} ${{e.code}}: ${{e.message}}`; }} }})()")
    };
    let table = [
        (
            "Buffer.from([1, 2]).readUInt16BE(2)",
            "RangeError ERR_OUT_OF_RANGE: The value of \\\"offset\\\" is out of range. It must be >= 0 and <= 0. Received 2",
        ),
        (
            "Buffer.from([1]).readUInt16BE()",
            "RangeError ERR_BUFFER_OUT_OF_BOUNDS: Attempt to access memory outside buffer bounds",
        ),
        (
            "Buffer.alloc(1).writeUInt8(256)",
            "RangeError ERR_OUT_OF_RANGE: The value of \\\"value\\\" is out of range. It must be >= 0 and <= 255. Received 256",
        ),
        (
            "Buffer.alloc(2).readInt8('1')",
            "TypeError ERR_INVALID_ARG_TYPE: The \\\"offset\\\" argument must be of type number. Received type string ('1')",
        ),
        ("Buffer.from('a', 'no')", "TypeError ERR_UNKNOWN_ENCODING: Unknown encoding: no"),
    ];
    for (body, expected) in table {
        check(&[(&caught(body), &format!("\"{expected}\""))]);
    }
}

#[test]
fn text_is_encoded_and_decoded() {
    check(&[
        ("Array.from(new TextEncoder().encode('é\\ud800'))", "[195,169,239,191,189]"),
        ("new TextEncoder().encodeInto('aé', new Uint8Array(2))", r#"{"read":1,"written":1}"#),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 65, 0xff]))", "\"A\u{fffd}\""),
        ("new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf])).length", "1"),
        (
            "(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])); } catch (e) { return e.name; } })()",
            r#""TypeError""#,
        ),
        ("new TextDecoder('latin1').decode(new Uint8Array([0x80, 0xe9]))", "\"€é\""),
        ("new TextDecoder('utf-16le').decode(new Uint8Array([65, 0, 0xac, 0x20]).buffer)", "\"A€\""),
        ("[atob('aGk='), atob(' a G k '), btoa('h\\xff')]", "[\"hi\",\"hi\",\"aP8=\"]"),
        ("(() => { try { atob('a'); } catch (e) { return e.name; } })()", r#""InvalidCharacterError""#),
    ]);
}

#[test]
fn the_whole_language_is_available() {
    check(&[
        ("[1, 2, 3].at(-1) + [3, 1, 2].toSorted().join('') + [1, 2].findLast((x) => x < 2)", r#""31231""#),
        ("Object.fromEntries(Object.entries({ a: 1 }).map(([k, v]) => [k + 1, v ?? 0]))", r#"{"a1":1}"#),
        ("new DataView(new Uint8Array(bytes).buffer).getUint16(0, true)", "513"),
        ("String(2n ** 64n) + 'é'.padStart(3, '0') + 'aXa'.replaceAll('a', '')", r#""1844674407370955161600éX""#),
        ("Array.isArray(bytes) && bytes instanceof Array && globalThis.Array === Array", "true"),
        ("Object.prototype.toString.call(bytes)", r#""[object Array]""#),
        (
            "[BigInt.asUintN(64, -2n), BigInt.asUintN(32, -2n), BigInt.asIntN(8, 255n)].map(String).join(' ')",
            r#""18446744073709551614 4294967294 -1""#,
        ),
        (
            "[1234567.8916, -0.5, 1e-7, 1e21].map((n) => n.toLocaleString()).join(' ')",
            r#""1,234,567.892 -0.5 0 1,000,000,000,000,000,000,000""#,
        ),
        ("(1234.5).toLocaleString('de-DE', { minimumFractionDigits: 2, useGrouping: false })", r#""1234.50""#),
        ("new Date(0).toString()", r#""Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)""#),
        ("/(?<year>\\d{4})/.exec('in 2024').groups.year", r#""2024""#),
        ("unescape(escape('ü')) + decodeURIComponent('%C3%A9')", "\"üé\""),
        ("[new Date(0).getHours(), new Date(2020, 0, 1).toISOString()]", r#"[0,"2020-01-01T00:00:00.000Z"]"#),
    ]);
}

#[test]
fn apis_that_reach_outside_are_undefined() {
    let names = [
        "process",
        "require",
        "fetch",
        "WebAssembly",
        "Javy",
        "std",
        "os",
        "setTimeout",
        "setInterval",
        "performance",
        "SharedArrayBuffer",
        "Atomics",
        "XMLHttpRequest",
        "Worker",
        "Deno",
        "Bun",
        "navigator",
        "scriptArgs",
        "print",
    ];
    let table: Vec<_> = names.iter().map(|name| (format!("typeof {name}"), r#""undefined""#)).collect();
    let table: Vec<_> = table.iter().map(|(expression, expected)| (expression.as_str(), *expected)).collect();
    check(&table);
}

#[test]
fn modules_are_not_imported_during_a_call_and_jobs_do_not_outlive_it() {
    let mut harness = Harness::new();
    harness.check_fails(Slot::Decoder, FailureKind::Output, "function Decoder() { return import('fs'); }");
    let text = "var ran = 0; function Decoder() { Promise.resolve().then(() => { ran = 1; }); return { ran: ran }; }";
    let functions = harness.load_in(Slot::Decoder, text);
    for _ in 0..2 {
        assert_eq!(fields(&harness.decode(&functions, b"x")), r#"{"ran":0}"#);
    }
}

/// Expressions that are NaN, by different instructions and functions, with bytes of a NaN that scripts write themselves.
const NANS: [&str; 18] = [
    "zero / zero",
    "-(zero / zero)",
    "inf - inf",
    "inf * zero",
    "-inf % 2",
    "Math.sqrt(-1 - zero)",
    "Math.log(-1 - zero)",
    "Math.acos(2 + zero)",
    "Math.pow(-8 - zero, 1 / 3)",
    "-Math.sin(-inf)",
    "Math.max(1, -(inf - inf))",
    "Math.fround(-(inf - inf))",
    "Math.f16round(-(inf - inf))",
    "+undefined * -1",
    "new Date(inf).getTime()",
    "odd.getFloat64(0)",
    "odd.getFloat32(8)",
    "odd.getFloat16(12)",
];

/// Processors give a NaN other bits than JavaScript does, and the code of the sandbox is compiled to leave them so.
#[test]
fn every_nan_has_the_same_bits() {
    let text = format!(
        "function Decoder(bytes) {{
            var zero = bytes[0] - bytes[0], inf = 1 / zero, odd = new DataView(new ArrayBuffer(14)), found = {{}};
            odd.setUint32(0, 0xfff00000); odd.setUint32(4, 1); odd.setUint32(8, 0xff800001); odd.setUint16(12, 0xfc01);
            function hex(array) {{ return Buffer.from(array.buffer).toString('hex'); }}
            [{}].forEach(function (nan) {{
                var set = new DataView(new ArrayBuffer(14)), moved = new Float64Array(2), f32 = Float32Array.of(nan);
                set.setFloat64(0, nan); set.setFloat32(8, nan); set.setFloat16(12, nan); moved.set([nan], 1);
                var wide = [Float64Array.of(nan), new Float64Array(1).fill(nan), new Float64Array(f32),
                    new Float64Array([1]).with(0, nan), Float64Array.from([1], function () {{ return -nan; }})];
                var is = [wide.map(hex), hex(f32), hex(new Float32Array(wide[0])), hex(Float16Array.of(nan)), hex(set),
                    hex(moved), Object.is(nan, NaN), new Set([nan, NaN]).size, [nan].includes(NaN)];
                found[JSON.stringify(is)] = 1;
            }});
            return {{ is: Object.keys(found).map(JSON.parse) }};
        }}",
        NANS.join(", ")
    );
    let wide = "000000000000f87f";
    Harness::new().check_decodes(
        &text,
        &[7],
        &format!(
            r#"{{"is":[[["{wide}","{wide}","{wide}","{wide}","{wide}"],"0000c07f","0000c07f","017c","7ff80000000000007fc000007c01","0000000000000000{wide}",true,1,true]]}}"#
        ),
    );
}

#[test]
fn a_source_can_shadow_a_built_in() {
    let mut harness = Harness::new();
    for declaration in
        ["function Buffer() { return 1; }", "var Buffer = function () { return 1; };", "const Buffer = () => 1;"]
    {
        harness.check_decodes(
            &format!("{declaration} function Decoder() {{ return {{ is: Buffer() }}; }}"),
            b"x",
            r#"{"is":1}"#,
        );
    }
}
