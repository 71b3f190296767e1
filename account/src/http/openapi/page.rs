//! Renders the API documentation as an HTML page without scripts and external resources.

use askama::Template;
use serde_json::Value;

/// The document as HTML.
pub(super) fn render(document: &Value) -> askama::Result<String> {
    ApiPage::of(document).render()
}

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage<'a> {
    style: &'static str,
    title: &'a str,
    /// Paragraphs.
    description: Vec<&'a str>,
    /// Names and descriptions.
    credentials: Vec<(&'a str, &'a str)>,
    groups: Vec<Group<'a>>,
    /// Names and schemas.
    bodies: Vec<(&'a str, String)>,
}

/// The calls with one tag.
struct Group<'a> {
    name: &'a str,
    calls: Vec<Call<'a>>,
}

struct Call<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: &'a str,
    description: &'a str,
    /// The alternative credentials, joined by "or".
    credentials: String,
    parameters: Vec<Parameter<'a>>,
    body: Option<Body<'a>>,
    responses: Vec<CallResponse<'a>>,
}

struct Parameter<'a> {
    name: &'a str,
    /// In the path, the query, a header or a cookie.
    place: &'a str,
    text: &'a str,
}

struct CallResponse<'a> {
    status: &'a str,
    text: &'a str,
    body: Option<Body<'a>>,
}

/// A link to a schema, or to the schema of a list's items.
struct Body<'a> {
    is_list: bool,
    name: Option<&'a str>,
}

impl<'a> ApiPage<'a> {
    fn of(document: &'a Value) -> Self {
        let info = &document["info"];
        let components = &document["components"];
        let pretty = |schema| serde_json::to_string_pretty(schema).unwrap_or_default();
        Self {
            style: include_str!("page.css"),
            title: text(&info["title"]),
            description: text(&info["description"]).split("\n\n").collect(),
            credentials: members(&components["securitySchemes"])
                .map(|(name, scheme)| (name, text(&scheme["description"])))
                .collect(),
            groups: items(&document["tags"]).map(|tag| Group::of(document, text(&tag["name"]))).collect(),
            bodies: members(&components["schemas"]).map(|(name, schema)| (name, pretty(schema))).collect(),
        }
    }

    /// Splits text at its backticks; true for what is between two of them.
    fn parts(text: &str) -> impl Iterator<Item = (bool, &str)> {
        text.split('`').enumerate().map(|(index, part)| (index % 2 == 1, part))
    }
}

impl<'a> Group<'a> {
    fn of(document: &'a Value, name: &'a str) -> Self {
        let calls = members(&document["paths"])
            .flat_map(|(path, calls)| members(calls).map(move |(method, call)| (path, method, call)))
            .filter(|(_, _, call)| text(&call["tags"][0]) == name);
        Self { name, calls: calls.map(|(path, method, call)| Call::of(document, path, method, call)).collect() }
    }
}

impl<'a> Call<'a> {
    fn of(document: &'a Value, path: &'a str, method: &str, call: &'a Value) -> Self {
        Self {
            id: text(&call["operationId"]),
            method: method.to_ascii_uppercase(),
            path,
            summary: text(&call["summary"]),
            description: text(&call["description"]),
            credentials: allowed(&call["security"]),
            parameters: items(&call["parameters"])
                .map(|parameter| resolved(document, parameter))
                .map(|parameter| Parameter {
                    name: text(&parameter["name"]),
                    place: text(&parameter["in"]),
                    text: text(&parameter["description"]),
                })
                .collect(),
            body: Body::of(&call["requestBody"]["content"]),
            responses: members(&call["responses"])
                .map(|(status, response)| (status, resolved(document, response)))
                .map(|(status, response)| CallResponse {
                    status,
                    text: text(&response["description"]),
                    body: Body::of(&response["content"]),
                })
                .collect(),
        }
    }
}

impl<'a> Body<'a> {
    fn of(content: &'a Value) -> Option<Self> {
        let (_, media) = members(content).next()?;
        let schema = &media["schema"];
        let is_list = schema["items"].is_object();
        let schema = if is_list { &schema["items"] } else { schema };
        Some(Self { is_list, name: schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) })
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Follows a reference.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn allowed(security: &Value) -> String {
    let names = items(security).map(|one| members(one).next().map_or("none", |(name, _)| name));
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" or ") }
}
