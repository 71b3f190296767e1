//! Objects whose properties come and go in other orders than a source suggests.

use airlock_runtime::Slot;

use crate::harness::{Harness, fields};

/// Asserts the JSON that the body of a decoder returns for one message and for the next. `b` is the first byte, 7.
fn check(table: &[(&str, &str)]) {
    let mut harness = Harness::new();
    for (body, expected) in table {
        let text = format!("function Decoder(bytes) {{ var b = bytes[0]; {body} }}");
        let functions = harness.load_in(Slot::Decoder, &text);
        for _ in 0..2 {
            assert_eq!(fields(&harness.decode(&functions, &[7])), *expected, "{text}");
        }
    }
}

#[test]
fn properties_keep_the_order_in_which_they_were_added() {
    check(&[
        (
            "function make(n) { var o = {}; if (n > 1) { o.a = 1; } o.b = 2; if (n > 2) { o.c = 3; } else { o.d = 4; }
             return o; } return { l: [make(1), make(2), make(3)] };",
            r#"{"l":[{"b":2,"d":4},{"a":1,"b":2,"d":4},{"a":1,"b":2,"c":3}]}"#,
        ),
        (
            "var l = []; for (var i = 0; i < 4; i++) { var o = {}; if (i % 2) { o.odd = i; } o.i = i; l.push(o); }
             l[0].late = true; return { l: l };",
            r#"{"l":[{"i":0,"late":true},{"odd":1,"i":1},{"i":2},{"odd":3,"i":3}]}"#,
        ),
        (
            "var o = {}, p = o; p.b = 1; o.a = 2; p = {}; p.a = 3; o.c = 4; o = [o]; o[0].b = 5; return { o: o, p: p };",
            r#"{"o":[{"b":5,"a":2,"c":4}],"p":{"a":3}}"#,
        ),
        (
            "var o = b > 200 ? { a: 1 } : {}; o.b = 2; o.a = 3; var p = b > 2 ? { a: 1 } : {}; p.b = 2; return { o: o, p: p };",
            r#"{"o":{"b":2,"a":3},"p":{"a":1,"b":2}}"#,
        ),
        (
            "var o = { a: { b: { c: 1, d: [{ e: 1, f: 2 }, { f: 3, e: 4 }] } } }; o.a.g = 5; o.a.b.h = { i: 6 }; return o;",
            r#"{"a":{"b":{"c":1,"d":[{"e":1,"f":2},{"f":3,"e":4}],"h":{"i":6}},"g":5}}"#,
        ),
        ("return { a: 1, b: 2, a: 3, c: 4, b: 5 };", r#"{"a":3,"b":5,"c":4}"#),
        (
            "var o = { b: 1, 2: 2, a: 3, 1: 4, '-1': 5, '01': 6, 4294967295: 7 }; o[0] = 8; o['3'] = 9; o.c = 10; return o;",
            r#"{"0":8,"1":4,"2":2,"3":9,"b":1,"a":3,"-1":5,"01":6,"4294967295":7,"c":10}"#,
        ),
        (
            "var k = 'k' + b, o = { a: 1, [k]: 2, ['x' + k]: 3, b: 4 }; o['c'] = 5; o[k + 1] = 6; o['a'] = 7; return o;",
            r#"{"a":7,"k7":2,"xk7":3,"b":4,"c":5,"k71":6}"#,
        ),
        (
            "var a = { x: 1, y: 2 }; return { o: { z: 0, ...a, x: 5, w: 6 }, a: Object.assign({ y: 9 }, a) };",
            r#"{"o":{"z":0,"x":5,"y":2,"w":6},"a":{"y":2,"x":1}}"#,
        ),
        (
            "var o = {}; function f() { try { o.a = 1; throw { code: 1, text: 'x' }; } catch (e) { o.e = e; return o; }
             finally { o.f = 2; } } f(); for (var i = 0; i < 2; i++) { try { if (i) { continue; } o.b = i; }
             finally { o['n' + i] = { i: i, o: 1 }; } } return o;",
            r#"{"a":1,"e":{"code":1,"text":"x"},"f":2,"b":0,"n0":{"i":0,"o":1},"n1":{"i":1,"o":1}}"#,
        ),
        (
            "function f(a, c) { arguments[0] = { y: 1, x: 2 }; arguments.extra = 1; a.z = 3; delete arguments[1];
             return { a: a, k: Object.keys(arguments), c: c }; } return f({ x: 1 }, 2);",
            r#"{"a":{"y":1,"x":2,"z":3},"k":["0","extra"],"c":2}"#,
        ),
        (
            "var o = { a: 1, c: 2 }; with (o) { a = { x: 1, y: 2 }; var d = { y: 1, x: c }; } o.d = d; return o;",
            r#"{"a":{"x":1,"y":2},"c":2,"d":{"y":1,"x":2}}"#,
        ),
    ]);
}

#[test]
fn objects_that_were_changed_share_nothing_with_others() {
    check(&[
        (
            "var o = { a: 1, b: 2, c: 3 }; delete o.a; o.d = 4; o.a = 5; var p = { a: 1, b: 2, c: 3 }; return { o: o, p: p };",
            r#"{"o":{"b":2,"c":3,"d":4,"a":5},"p":{"a":1,"b":2,"c":3}}"#,
        ),
        (
            "var o = Object.freeze({ a: 1, b: 2 }); o.c = 3; o.a = 9; var p = { a: 1, b: 2 }; p.c = 3; p.a = 4;
             return { o: o, p: p, is: [Object.isFrozen(o), Object.isFrozen(p)] };",
            r#"{"o":{"a":1,"b":2},"p":{"a":4,"b":2,"c":3},"is":[true,false]}"#,
        ),
        (
            "var o = { a: 1, b: 2 }; Object.defineProperty(o, 'a', { enumerable: false }); var p = {}; p.a = 1; p.b = 2;
             return { o: o, p: p, n: Object.getOwnPropertyNames(o) };",
            r#"{"o":{"b":2},"p":{"a":1,"b":2},"n":["a","b"]}"#,
        ),
        (
            "var o = { a: 1, get b() { return this.a + 1; }, set b(v) { this.c = v; }, d() { return 1; }, e: 5 }; o.b = 7;
             o.a = 2; return { o: o, k: Object.keys(o) };",
            r#"{"o":{"a":2,"b":3,"e":5,"c":7},"k":["a","b","d","e","c"]}"#,
        ),
        (
            "var o = { a: 1 }; Object.setPrototypeOf(o, { z: 1 }); o.b = 2; o.c = o.z; var p = { a: 1 }; p.b = 2; p.c = p.z;
             var q = { __proto__: { y: 4 }, a: 1 }; q.b = q.y; var r = {}; r.__proto__ = { y: 5 }; r.a = r.y;
             return { o: o, p: p, q: q, r: r };",
            r#"{"o":{"a":1,"b":2,"c":1},"p":{"a":1,"b":2},"q":{"a":1,"b":4},"r":{"a":5}}"#,
        ),
        (
            "Object.defineProperty(Object.prototype, 'a', { set: function (v) { this.got = v; }, configurable: true });
             var o = {}; o.a = 1; o.b = 2; var p = { a: 1, b: 2 }; delete Object.prototype.a; var q = {}; q.a = 1; q.b = 2;
             return { o: o, p: p, q: q };",
            r#"{"o":{"got":1,"b":2},"p":{"a":1,"b":2},"q":{"a":1,"b":2}}"#,
        ),
        (
            "Object.defineProperty(Object.prototype, 'a', { value: 7, configurable: true }); var o = {}; o.a = 2; o.b = 3;
             var keys = Object.keys(o); delete Object.prototype.a; o.a = 4; return { o: o, keys: keys };",
            r#"{"o":{"b":3,"a":4},"keys":["b"]}"#,
        ),
    ]);
}

#[test]
fn objects_may_be_more_and_larger_than_the_shapes_made_in_advance() {
    let names = |form: &dyn Fn(u32) -> String, between: &str| (0..60).map(form).collect::<Vec<_>>().join(between);
    let assigned = format!("var o = {{}}; {} return o;", names(&|i| format!("o.n{i} = {i};"), " "));
    let literal = format!("return {{ {} }};", names(&|i| format!("n{i}: {i}"), ", "));
    let wide = format!("{{{}}}", names(&|i| format!("\"n{i}\":{i}"), ","));
    let objects = (0..80).map(|i| format!("{{ a{i}: {i}, z: 1 }}")).collect::<Vec<_>>().join(", ");
    let many = format!("var l = [{objects}]; l[79].y = 2; return l[79];");
    let locals = (0..200).map(|i| format!("var v{i} = {{}};")).collect::<Vec<_>>().concat();
    let far = format!("{locals} v127.a = 1; v128.a = 2; v199.b = 1; v199.a = 2; return {{ l: [v127, v128, v199] }};");
    check(&[
        (assigned.as_str(), wide.as_str()),
        (literal.as_str(), wide.as_str()),
        (many.as_str(), r#"{"a79":79,"z":1,"y":2}"#),
        (far.as_str(), r#"{"l":[{"a":1},{"a":2},{"b":1,"a":2}]}"#),
    ]);
}
