//! The functions that a network calls and that a codec lacks, by way of those that it has.

use runtime::{Dialect, Function};

use crate::lint::{
    rules::{Parsed, entry::is_defined},
    target::{ENTRIES, Entry, Target},
};

/// Functions to add to a text.
#[derive(Default)]
pub(super) struct Wrapper {
    pub(super) text: String,
    pub(super) changes: Vec<String>,
}

/// The decoder and the encoder that `target` calls, as far as they are missing. `dialects` come first as what they call:
/// those that the examples are for.
pub(super) fn missing(parsed: &Parsed<'_>, dialects: &[Dialect], target: Target) -> Wrapper {
    let mut wrapper = Wrapper::default();
    let source = parsed.source(target);
    for function in [Function::Decoder, Function::Encoder] {
        let of = |entry: &&Entry| entry.function == function;
        let mut wanted = target.entries().iter().filter(of);
        if wanted.clone().any(|entry| is_defined(source, entry.name)) {
            continue;
        }
        let defined: Vec<&Entry> = ENTRIES.iter().filter(of).filter(|entry| is_defined(source, entry.name)).collect();
        let preferred = dialects.iter().find_map(|dialect| defined.iter().find(|entry| entry.dialect == *dialect));
        if let (Some(wanted), Some(own)) = (wanted.next(), preferred.or(defined.first())) {
            wrapper.text += &format!("\n{}", function_text(wanted, own, &parsed.v2_globals(target)));
            wrapper.changes.push(format!("added `{}`, which calls `{}`", wanted.name, own.name));
        }
    }
    if wrapper.text.is_empty() { wrapper } else { Wrapper { text: format!("\n{}", wrapper.text), ..wrapper } }
}

/// A function of one dialect that calls one of another, in ES5. `globals` are those that the callee reads.
fn function_text(wanted: &Entry, own: &Entry, globals: &[&str]) -> String {
    let is_decoder = wanted.function == Function::Decoder;
    let (parameters, subject, port, variables) = match (wanted.dialect, is_decoder) {
        (Dialect::Ts013, true) => ("input", "input.bytes", "input.fPort", "input.variables || {}"),
        (Dialect::Ts013, false) => ("input", "input.data", "input.fPort || 1", "input.variables || {}"),
        (Dialect::V2, true) => ("bytes, port", "bytes", "port", "{}"),
        (Dialect::V2, false) => ("object, port", "object", "port", "{}"),
        (Dialect::ChirpStack3, true) => ("fPort, bytes, variables", "bytes", "fPort", "variables"),
        (Dialect::ChirpStack3, false) => ("fPort, object, variables", "object", "fPort", "variables"),
    };
    let member = if is_decoder { "bytes" } else { "data" };
    let call = match own.dialect {
        Dialect::Ts013 => format!(
            "{}({{ {member}: {subject}, fPort: {port}, recvTime: new Date(), variables: {variables} }})",
            own.name
        ),
        Dialect::V2 => format!("{}({subject}, {port})", own.name),
        Dialect::ChirpStack3 => format!("{}({port}, {subject}, {variables})", own.name),
    };
    let mut body = String::new();
    for name in globals {
        body += &format!("  {name} = {};\n", if *name == "port" { port } else { subject });
    }
    body += &match (wanted.dialect, own.dialect) {
        (Dialect::Ts013, _) if is_decoder => format!("  return {{ data: {call} }};\n"),
        (Dialect::Ts013, _) => format!("  return {{ bytes: {call}, fPort: {port} }};\n"),
        (_, Dialect::Ts013) => {
            let result = if is_decoder { "data" } else { "bytes" };
            format!(
                "  var result = {call};\n  if (result.errors && result.errors.length) {{\n    throw new Error(result.errors.join(\", \"));\n  }}\n  return result.{result};\n"
            )
        }
        _ => format!("  return {call};\n"),
    };
    format!("function {}({parameters}) {{\n{body}}}\n", wanted.name)
}
