//! JSON Schemas of requests and responses. A request may be less strict than a response of the same type.

use aide::{
    generate::GenContext,
    openapi::{MediaType, Operation, ReferenceOr, RequestBody, SchemaObject},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

/// Describes the body of a request in these media types.
pub fn body<T: JsonSchema>(context: &mut GenContext, operation: &mut Operation, media_types: &[&str]) {
    let schema = for_request::<T>(context);
    let content = media_types.iter().map(|name| ((*name).to_owned(), media(schema.clone())));
    let body = RequestBody { content: content.collect(), required: true, ..RequestBody::default() };
    operation.request_body = Some(ReferenceOr::Item(body));
}

/// A generator of request schemas, in the dialect of OpenAPI 3.1.
pub(super) fn generator() -> SchemaGenerator {
    settings().into_generator()
}

pub(super) fn for_request<T: JsonSchema>(context: &mut GenContext) -> Schema {
    let mut generator = generator();
    let schema = generator.subschema_for::<T>();
    // If a type is in requests and responses, the schema of requests is kept, which allows more.
    context.schema.definitions_mut().extend(generator.take_definitions(true));
    schema
}

/// The schema of a query string, whose members cannot be `null`.
pub(super) fn for_query<T: JsonSchema>() -> Schema {
    let settings = settings().with_transform(RecursiveTransform(leave_out_null));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The variants of an enum are alternative parameters, so none is required.
    if let Some(Value::Array(choices)) = schema.remove("oneOf") {
        let members = choices.into_iter().flat_map(|choice| {
            let description = choice["description"].clone();
            let members = choice["properties"].as_object().cloned().unwrap_or_default().into_iter();
            members.map(move |(name, mut member)| {
                member["description"] = description.clone();
                (name, member)
            })
        });
        let members = members.collect();
        schema.insert("properties".to_owned(), Value::Object(members));
    }
    schema
}

pub(super) fn for_response<T: JsonSchema>(context: &mut GenContext) -> Schema {
    let settings = settings().for_serialize().with_transform(RecursiveTransform(leave_out_null));
    let mut generator = settings.into_generator();
    let schema = generator.subschema_for::<T>();
    for (name, definition) in generator.take_definitions(true) {
        context.schema.definitions_mut().entry(name).or_insert(definition);
    }
    schema
}

/// A body with this schema.
pub(super) fn media(schema: Schema) -> MediaType {
    MediaType { schema: Some(object(schema)), ..MediaType::default() }
}

/// A schema as aide wraps it.
pub(super) fn object(json_schema: Schema) -> SchemaObject {
    SchemaObject { json_schema, external_docs: None, example: None }
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

/// Removes `null` from optional members, because members without a value are omitted.
fn leave_out_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").cloned().unwrap_or_else(|| json!([]));
    let Some(members) = object.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    for (_, member) in members.iter_mut().filter(|(name, _)| !is_required(name)) {
        let Some(member) = member.as_object_mut() else { continue };
        if let Some(Value::Array(kinds)) = member.get_mut("type") {
            kinds.retain(|kind| kind != "null");
        }
        if let Some(Value::Array(choices)) = member.get_mut("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
            // Replaces a single remaining choice by its keywords.
            if let [Value::Object(only)] = &choices[..] {
                let only = only.clone();
                member.remove("anyOf");
                member.extend(only);
            }
        }
    }
}
