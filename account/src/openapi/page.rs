//! Renders the API documentation as an HTML page without scripts and external resources.

use std::fmt::{self, Write};

use serde_json::Value;

const STYLE: &str = include_str!("page.css");

/// The document as HTML.
pub(super) fn render(document: &Value) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    _ = write_page(&mut page, document);
    page
}

fn write_page(out: &mut String, document: &Value) -> fmt::Result {
    let info = &document["info"];
    let title = text(&info["title"]);
    write!(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>")?;
    write!(out, "<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>")?;
    write!(out, "<header><h1>{title}</h1>")?;
    for paragraph in info["description"].as_str().unwrap_or_default().split("\n\n") {
        write!(out, "<p>{}</p>", marked(paragraph))?;
    }
    write!(out, "<p>For programs: <a href=\"openapi.json\">openapi.json</a></p></header><main>")?;
    credentials(out, &document["components"]["securitySchemes"])?;
    for tag in document["tags"].as_array().into_iter().flatten() {
        write!(out, "<section><h2>{}</h2>", text(&tag["name"]))?;
        for (path, method, call) in calls(document).filter(|(_, _, call)| call["tags"][0] == tag["name"]) {
            write_call(out, document, path, method, call)?;
        }
        write!(out, "</section>")?;
    }
    write!(out, "<section><h2>Bodies</h2>")?;
    for (name, schema) in members(&document["components"]["schemas"]) {
        let json = serde_json::to_string_pretty(schema).unwrap_or_default();
        let name = escaped(name);
        write!(out, "<h3 id=\"{name}\">{name}</h3><pre tabindex=\"0\">{}</pre>", escaped(&json))?;
    }
    writeln!(out, "</section></main></body></html>")
}

fn credentials(out: &mut String, schemes: &Value) -> fmt::Result {
    write!(out, "<section><h2>Credentials</h2><dl>")?;
    for (name, scheme) in members(schemes) {
        write!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), text(&scheme["description"]))?;
    }
    write!(out, "</dl></section>")
}

fn write_call(out: &mut String, document: &Value, path: &str, method: &str, call: &Value) -> fmt::Result {
    let (id, method) = (text(&call["operationId"]), method.to_ascii_uppercase());
    write!(out, "<article id=\"{id}\"><h3><code><b>{method}</b> {}</code></h3>", escaped(path))?;
    write!(out, "<p>{}. {}</p><dl>", text(&call["summary"]), text(&call["description"]))?;
    write!(out, "<dt>Credential</dt><dd>{}</dd>", allowed(&call["security"]))?;
    for parameter in call["parameters"].as_array().into_iter().flatten() {
        let parameter = resolved(document, parameter);
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        write!(out, "<dt><code>{name}</code> in the {place}</dt><dd>{}</dd>", text(&parameter["description"]))?;
    }
    if let Some((_, body)) = members(&call["requestBody"]["content"]).next() {
        write!(out, "<dt>Body</dt><dd>{}</dd>", schema(&body["schema"]))?;
    }
    for (status, response) in members(&call["responses"]) {
        let response = resolved(document, response);
        write!(out, "<dt>{status}</dt><dd>{}", text(&response["description"]))?;
        if let Some((_, body)) = members(&response["content"]).next() {
            write!(out, " {}", schema(&body["schema"]))?;
        }
        write!(out, "</dd>")?;
    }
    write!(out, "</dl></article>")
}

fn calls(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    members(&document["paths"]).flat_map(|(path, calls)| members(calls).map(move |(method, call)| (path, method, call)))
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Follows a reference.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// The alternative credentials, joined by "or".
fn allowed(security: &Value) -> String {
    let names = security.as_array().into_iter().flatten().map(|one| {
        let name = members(one).next().map_or("none", |(name, _)| name);
        escaped(name)
    });
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" or ") }
}

/// A link to a schema, or to the schema of a list's items.
fn schema(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        let name = escaped(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    match schema["items"].is_object() {
        true => format!("A list of {}", self::schema(&schema["items"])),
        false => String::new(),
    }
}

fn text(value: &Value) -> String {
    marked(value.as_str().unwrap_or_default())
}

/// Renders text in backticks as code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
